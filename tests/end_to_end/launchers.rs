//! Programs of several processes: ranks that a launcher starts, each under streamsan and with a
//! trace of its own, and children that a program under streamsan starts itself, all in one trace.

use std::path::Path;
use std::process::Command;

use libtest_mimic::Trial;

use crate::command::{Ended, Scratch, streamsan};
use crate::tools::{MPIRUN, PYTHON, command, find, project, with};

/// The one that forgets the wait.
const RACY: &str = "1";

pub(crate) fn add(trials: &mut Vec<Trial>) {
    trials.push(with(PYTHON, "launchers::torchrun", || launched("torchrun", "RANK")));
    trials.push(with(PYTHON, "launchers::srun", || launched("srun", "SLURM_PROCID")));
    trials.push(with(MPIRUN, "launchers::mpirun", mpirun));
    for how in ["subprocess", "spawn", "forkserver", "fork"] {
        trials.push(with(PYTHON, &format!("launchers::python_{how}"), move || children(how)));
    }
}

/// A rank as a job's command line has it: `streamsan run ... -- python3 worker.py RACY`.
fn rank(command: &mut Command, variable: &str) {
    let python = find("python3");
    command.arg(streamsan()).args(["run", "--sim", "--require-cuda", "-o"]);
    command.arg(format!("traces/rank-%q{{{variable}}}.db")).arg("--");
    command.arg(python).args(["worker.py", RACY]);
}

/// Nothing stands for torchrun and srun here but the variables that they set.
fn launched(how: &str, variable: &str) {
    let scratch = Scratch::new();
    let folder = project(&scratch, "python");
    let mut launch = command(&scratch, &folder, "python3");
    launch.args(["launch.py", how, "3"]);
    rank(&mut launch, variable);
    let ended = scratch.finish(&mut launch);
    ended.expect_code(66);
    each_rank_has_a_trace(&scratch, &folder, &ended);
}

/// Ends when all ranks have come so far, with the code of its own: mpirun ends the others as soon as
/// one fails, and they would have no whole trace. Gives up when one never comes.
const TOGETHER: &str = "\"$@\"; code=$?; : > ended-$OMPI_COMM_WORLD_RANK; tries=0
    until [ -e ended-0 ] && [ -e ended-1 ] && [ -e ended-2 ] || [ $tries = 6000 ]
    do sleep 0.1; tries=$((tries + 1)); done; exit $code";

/// Open MPI's own launcher, which starts programs that are none of MPI's too.
fn mpirun() {
    let scratch = Scratch::new();
    let folder = project(&scratch, "python");
    let mut mpirun = command(&scratch, &folder, "mpirun");
    mpirun.args(["--allow-run-as-root", "--oversubscribe", "-n", "3"]);
    mpirun.args(["sh", "-c", TOGETHER, "sh"]);
    rank(&mut mpirun, "OMPI_COMM_WORLD_RANK");
    let ended = scratch.finish(&mut mpirun);
    assert_ne!(ended.status.code(), Some(0), "{}", ended.stderr);
    each_rank_has_a_trace(&scratch, &folder, &ended);
}

fn each_rank_has_a_trace(scratch: &Scratch, folder: &Path, ended: &Ended) {
    assert_eq!(ended.stderr.matches("verdict: RACY").count(), 1, "{}", ended.stderr);
    for rank in ["0", "1", "2"] {
        let trace = folder.join(format!("traces/rank-{rank}.db"));
        let check = scratch.finish(&mut scratch.streamsan(&["check".as_ref(), trace.as_ref()]));
        check.expect_code(i32::from(rank == RACY));
    }
    // And all of them one report, one exit code.
    let mut check = scratch.streamsan(&["check".as_ref(), "traces".as_ref()]);
    let together = scratch.finish(check.current_dir(folder));
    together.expect_code(1);
    let printed = String::from_utf8_lossy(&together.stdout);
    assert!(printed.contains("in 1 of 3 traces: traces/rank-1.db (at #"), "{printed}");
    assert!(printed.contains("traces: 3 traces, 1 racy"), "{printed}");
}

/// However Python starts a child, it is in its parent's trace.
fn children(how: &str) {
    let scratch = Scratch::new();
    let folder = project(&scratch, "python");
    let mut run = command(&scratch, &folder, streamsan().to_str().expect("a plain path"));
    run.args(["run", "--sim"]).args(scratch.run_options()).arg("--");
    run.arg(find("python3")).args(["spawn.py", how]);
    scratch.finish(&mut run).expect_code(66);
    let report = scratch.report();
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{report:#}");
    let trace = rusqlite::Connection::open(scratch.trace()).expect("a trace");
    let processes = trace.query_row("SELECT count(DISTINCT process) FROM op", [], |row| row.get(0));
    let processes: i64 = processes.expect("processes are counted");
    assert_eq!(processes, 2, "{how}");
}
