//! A pipeline of four chunks over four streams: upload, kernel, download, all chunks in flight.
//!
//! The hazard: an index that is off by one sends the download of each chunk to the neighbour's
//! stream, which knows nothing of the chunk's kernel.
//!
//! racy: four RAW, kernel `scale` against the download, certain with exact kernel accesses.
//! clean: a chunk stays in its stream, and the chunks share buffers but no bytes.

use program_support::{
    Arg, DeviceBuffer, Failure, Gpu, Module, PinnedBuffer, Stream, Variant, check, copy_to_device,
    copy_to_host,
};

const CHUNKS: usize = 4;
const WORDS: u32 = 256;
const BYTES: usize = WORDS as usize * 4;

pub(crate) fn program(variant: Variant) -> Result<(), Failure> {
    let gpu = Gpu::open()?;
    let module = Module::load(include_str!("ptx/elementwise.ptx"))?;
    let scale = module.kernel("scale")?;
    let streams = (0..CHUNKS).map(|_| Stream::non_blocking()).collect::<Result<Vec<_>, _>>()?;
    let source = PinnedBuffer::filled(CHUNKS * BYTES, 0)?;
    let result = PinnedBuffer::filled(CHUNKS * BYTES, 0)?;
    source.write_words(0..CHUNKS as u32 * WORDS);
    let input = DeviceBuffer::alloc(CHUNKS * BYTES)?;
    let output = DeviceBuffer::alloc(CHUNKS * BYTES)?;

    for chunk in 0..CHUNKS {
        let stream = &streams[chunk];
        let bytes = chunk * BYTES..(chunk + 1) * BYTES;
        let (chunk_in, chunk_out) = (input.part(bytes.clone()), output.part(bytes.clone()));
        copy_to_device(chunk_in, &source, bytes.start, stream)?;
        let arguments =
            [Arg::Pointer(chunk_in), Arg::Pointer(chunk_out), Arg::Word(3), Arg::Word(WORDS)];
        scale.launch(WORDS, stream, &arguments)?;

        let download = if variant.is_racy() { &streams[(chunk + 1) % CHUNKS] } else { stream };
        copy_to_host(&result, bytes.start, chunk_out, download)?;
    }
    gpu.synchronize_current_context()?;

    if !variant.is_racy() {
        for word in 0..CHUNKS * WORDS as usize {
            check("scaled word", result.word(word).into(), 3 * word as u64)?;
        }
    }
    for stream in streams {
        stream.destroy()?;
    }
    input.free()?;
    output.free()?;
    source.free()?;
    result.free()?;
    module.unload()?;
    gpu.close()
}
