"""Graphs of PyTorch whose verdict hangs on what their kernels touch. The argument names the variant:

branches_racy, branches_joined: a side stream in the capture, whose result is used before or behind
    `wait_stream`
input_racy, input_clean: the static input is filled in another stream, beside or behind the replay
output_racy, output_clean: the output is used in another stream, beside or behind the replay
compiled: `torch.compile(mode="reduce-overhead")`, which replays graphs of its own

What a graph makes lies in its private pool, mostly in one segment. Prints the variant's name."""

import sys

import torch

variant = sys.argv[1]
racy = variant.endswith("_racy")
device = torch.device("cuda")
side = torch.cuda.Stream()


def other_stream(work):
    """Runs work in the side stream, behind the current stream unless the variant is racy."""
    if not racy:
        side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        work()


def warm_up(work):
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            work()
    torch.cuda.current_stream().wait_stream(stream)
    torch.cuda.synchronize()


def branches():
    inputs = torch.ones(1 << 20, device=device)
    left, right, total = (torch.empty_like(inputs) for _ in range(3))

    def step():
        current = torch.cuda.current_stream()
        side.wait_stream(current)
        with torch.cuda.stream(side):
            torch.mul(inputs, 2, out=right)
        torch.mul(inputs, 3, out=left)
        if racy:
            torch.add(left, right, out=total)
        current.wait_stream(side)
        if not racy:
            torch.add(left, right, out=total)

    # One step outside the capture would have the race outside of the graph.
    warm_up(lambda: (torch.mul(inputs, 2, out=left), torch.add(left, left, out=total)))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    graph.replay()


def captured():
    inputs = torch.ones(1 << 20, device=device)
    warm_up(lambda: torch.relu(inputs * 2 + 1))
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        outputs = torch.relu(inputs * 2 + 1)
    return graph, inputs, outputs


def static_input():
    graph, inputs, _ = captured()
    graph.replay()
    other_stream(lambda: inputs.fill_(3))


def output():
    graph, _, outputs = captured()
    result = torch.empty_like(outputs)
    torch.cuda.synchronize()
    graph.replay()
    other_stream(lambda: torch.mul(outputs, 2, out=result))


def compiled():
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Linear(256, 512), torch.nn.GELU(), torch.nn.Linear(512, 64)
    ).to(device)
    fast = torch.compile(network, mode="reduce-overhead")
    with torch.no_grad():
        for _ in range(5):
            total = fast(torch.randn(32, 256, device=device)).sum()
    assert total.isfinite()


{"branches": branches, "input": static_input, "output": output, "compiled": compiled}[
    variant.split("_")[0]
]()
torch.cuda.synchronize()
print(variant)
