//! Every kind of syntax error: where it stands and what it says.

use streamsan_text::parse;

/// Text, line, column, and a piece of the message.
const ERRORS: &[(&str, usize, usize, &str)] = &[
    ("lunch s1 k", 1, 1, "a verb such as"),
    ("prefetch s1", 1, 12, "a buffer, found nothing"),
    ("prefetch s1 A[4..4]", 1, 13, "no byte is meant"),
    ("attach s1 A global", 1, 11, "only managed memory can be attached"),
    ("alloc_managed M 8\nattach s1 M all", 2, 13, "`global`, `host` or `single`"),
    ("write_value s1 V=x", 1, 18, "a value as a decimal number"),
    ("write_value s1 V geq", 1, 18, "the end of the line"),
    ("write_value s1 V[0..2]", 1, 16, "a word of 4 or 8 bytes"),
    ("alloc V 2\nwait_value s1 V", 2, 15, "a word of 4 or 8 bytes"),
    ("signal s1 3", 1, 11, "a semaphore"),
    ("release 1", 1, 9, "what the threads order themselves by"),
    ("context c1 green=c9", 1, 18, "context `c9` is not declared"),
    ("context c1\ncontext c2 green=c1", 2, 18, "the primary context"),
    ("context c1 green=D1 device=2", 1, 9, "is on device 1"),
    ("context D1 green=c0", 1, 9, "a primary context, not a green one"),
    ("context P2", 1, 9, "the prefix of a process"),
    ("launch s1 k programmatic_event=e completion_event=f", 1, 51, "one event at most"),
    ("copy s1 dst:A src:B order=late", 1, 27, "`stream`, `call` or `any`"),
    ("copy s1 dst:A src:B sync_memops", 1, 21, "the end of the line"),
    ("option fast", 1, 8, "`strict_host_threads`"),
    ("launch s1 k\noption strict_host_threads", 2, 1, "before the first call"),
    ("P0: launch s1 k", 1, 1, "a process as `P2:`"),
    ("P2T0: launch s1 k", 1, 1, "a process as `P2:`"),
    ("P2X: launch s1 k", 1, 1, "a process as `P2:`"),
    ("launch", 1, 7, "expected a stream, found nothing"),
    ("launch s1", 1, 10, "the name of a kernel, found nothing"),
    ("launch s1 w:A", 1, 11, "the name of a kernel before its accesses"),
    ("launch s1 k A", 1, 13, "an access such as"),
    ("launch s1 k x:A", 1, 13, "an access such as"),
    ("launch s1 k r:", 1, 15, "expected a buffer, found nothing"),
    ("launch s1 k r:A[0..8", 1, 21, "`]`"),
    ("launch s1 k r:A[8]", 1, 17, "bytes as `a..b`"),
    ("launch s1 k r:A[8..4]", 1, 17, "a not above b"),
    ("launch s1 k r:A[0..1025]", 1, 17, "beyond the buffer, which has 1024 bytes"),
    ("launch s1 k r:A[0..8/4*2]", 1, 17, "rows of 8 bytes do not fit in a pitch of 4"),
    ("launch s1 k r:A[0..8/16*2/16*2]", 1, 17, "slices of 2 rows do not fit"),
    ("launch s1 k r:A[0..8/16]", 1, 22, "`pitch*rows`"),
    ("launch s1 k r:A[0..8/16*2/64*2/1*1]", 1, 32, "`]`"),
    ("launch s1 k r:A[0..8/18446744073709551615*9]", 1, 17, "beyond the buffer"),
    ("launch s1 k r:A[0..99999999999999999999]", 1, 20, "does not fit in 64 bits"),
    ("launch s1 k r:A w:A", 1, 17, "the same bytes twice"),
    ("launch work k", 1, 8, "stream `work` is not declared"),
    ("launch c9/s1 k", 1, 8, "context `c9` is not declared"),
    ("stream legacy", 1, 8, "is a default stream"),
    ("stream s1\nstream s1", 2, 8, "stream `s1` is in use since line 1"),
    ("stream s1\ndestroy_stream s1\nlaunch s1 k", 3, 8, "destroyed on line 2"),
    ("stream s1 device=1", 1, 11, "the end of the line"),
    ("stream s1 priority=high", 1, 20, "a priority as a number"),
    ("context c1\ncontext c1", 2, 9, "in use since line 1"),
    ("context D1 device=2", 1, 9, "the primary context of device 1"),
    ("alloc A", 1, 8, "the size in bytes"),
    ("alloc A 0", 1, 9, "a size from 1"),
    ("alloc A 1K", 1, 9, "the size in bytes, found `1K`"),
    ("alloc A 8\nalloc A 8", 2, 7, "buffer `A` is in use since line 1"),
    ("alloc A 8 status=2", 1, 1, "makes nothing that could be named"),
    ("alloc A 8\nalloc B 8 at=A", 2, 14, "has not been freed"),
    ("alloc A 8\nfree A\nalloc B 8 at=A[0..4]", 3, 14, "expected 8 bytes"),
    ("alloc_async A 8", 1, 16, "a stream"),
    ("alloc_pinned A 8\nfree A", 2, 1, "write `free_pinned A`"),
    ("free_pinned A", 1, 1, "write `free A`"),
    ("pageable A 8\nfree A", 2, 6, "no driver call frees"),
    ("copy s1 dst:A", 1, 14, "`src:` and a buffer, found nothing"),
    ("copy s1 A B", 1, 9, "`dst:` and a buffer"),
    ("copy s1 dst:A src:A", 1, 1, "the same bytes"),
    ("alloc A 8\ncopy s1 dst:A src:B", 2, 19, "the source has 1024 bytes and the destination 8"),
    ("copy s1 dst:A[0..0] src:B[0..0]", 1, 1, "a copy of no bytes"),
    ("copy2d s1 dst:A(0,64) src:B(0,64) 8", 1, 36, "the number of rows"),
    ("copy2d s1 dst:A src:B 8 2", 1, 16, "`(offset,pitch)`"),
    ("copy2d s1 dst:A(0) src:B(0,64) 8 2", 1, 17, "`(offset,pitch)`"),
    ("copy2d s1 dst:A(0,64 src:B(0,64) 8 2", 1, 21, "`)`"),
    ("pageable H 8\ncopy_peer s1 dst:A[0..8] src:H", 2, 1, "contexts on both sides"),
    ("record e1", 1, 10, "a stream"),
    ("wait s1 e/1", 1, 9, "context `e` is not declared"),
    ("query_event e1 status=1 busy", 1, 1, "two answers"),
    ("query_event e1 bsy", 1, 16, "the end of the line"),
    ("launch s1 k status=x", 1, 20, "a driver result"),
    ("launch s1 k api=", 1, 17, "an entry point"),
    ("T0: launch s1 k", 1, 1, "a host thread as `T2:`"),
    ("T2:", 1, 4, "a verb, found nothing"),
    ("run_host_fn 1", 1, 13, "no line 1 with a `host_fn`"),
    ("launch s1 k\nrun_host_fn 1", 2, 13, "no line 1 with a `host_fn`"),
    ("launch s1 k w:A\nlaunch s2 k w:A #~", 2, 19, "`race`, `latent` or `lint`"),
    ("launch s1 k w:A\nlaunch s2 k w:A #~ race", 2, 24, "RAW, WAR, WAW"),
    ("launch s1 k w:A\nlaunch s2 k w:A #~ race WAW", 2, 28, "the line of the earlier"),
    ("launch s1 k w:A\nlaunch s2 k w:A #~ race WAW 2", 2, 29, "not before line 2"),
    ("\n\nlaunch s2 k w:A #~ race WAW 1", 3, 29, "line 1 holds no call"),
    ("launch s1 k\nlaunch s2 k #~ race WAW 1;", 2, 27, "`race`, `latent` or `lint`"),
    ("launch s1 k\nlaunch s2 k #~ race WAW 1 class=odd", 2, 33, "race class"),
    ("launch s1 k\nlaunch s2 k #~ race WAW 1 sure", 2, 27, "`class=`"),
    ("launch s1 k #~ lint", 1, 20, "the class of the lint"),
    ("pageable H 8 #~ lint missing-wait", 1, 16, "holds no call"),
];

#[test]
fn errors_name_their_place_and_what_was_expected() {
    for &(text, line, column, message) in ERRORS {
        let error = parse(text).expect_err(text);
        assert_eq!((error.line, error.column), (line, column), "{text}\n{error}");
        assert!(error.message.contains(message), "{text}\n{error}");
    }
}

#[test]
fn long_words_are_cut_in_messages() {
    let error = parse(&"x".repeat(10_000)).expect_err("not a verb");
    assert!(error.message.len() < 200, "{error}");
}

#[test]
fn comments_and_blank_lines_are_no_calls() {
    let trace = parse("# one\n\n   \t\n  # two #~ race\r\n").expect("comments only");
    assert!(trace.items.is_empty() && trace.expectations.is_empty());
}
