//! The timeline of the page, its memory and its statistics: what is drawn and counted.

use super::{Bench, SMALL, corpus};
use serde_json::json;
use std::fs;
use streamsan_testing::browser::{Browser, Look};

/// Functions of the page's test: what stands on the timeline at an operation's place.
const ON_THE_TIMELINE: &str = r"(() => {
  const canvas = document.getElementById('lanes');
  const style = getComputedStyle(document.documentElement);
  const hex = (name) => style.getPropertyValue('--' + name).trim().slice(1);
  const groups = new Map([...'oashmcudk'].map((name) => [hex(name), name]));
  window.drawn = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  window.place = (at) => 170 + (at - Number(canvas.dataset.from)) / Number(canvas.dataset.unit);
  // The letter of a group in a row, a few pixels behind where an operation begins.
  window.group = (row, at) => {
    const [r, g, b] = canvas.getContext('2d').getImageData(place(at) + 14, 26 + 20 * row + 9, 1, 1).data;
    const found = [r, g, b].map((value) => value.toString(16).padStart(2, '0')).join('');
    return groups.get(found) ?? '.';
  };
  window.press = async (key) => {
    canvas.dispatchEvent(new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true }));
    await drawn();
    return [Number(canvas.dataset.from), Number(canvas.dataset.unit)];
  };
})()";

#[test]
#[ignore = "needs Chromium"]
fn timeline_shows_every_operation_of_a_short_trace() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let page = bench.page_of(SMALL, &[]);
    for dark in [false, true] {
        browser.open(&page, Look { dark, ..Look::DESK });
        browser.evaluate(ON_THE_TIMELINE);
        browser.evaluate("drawn()");
        // Reading pixels back is something that the browser complains of.
        assert_eq!(browser.complaints(), Vec::<String>::new());
        // Rows: the host's thread, a, b. A row has nothing where another one's call stands.
        for (row, at, group) in [
            (0, 3, "o"),
            (0, 4, "a"),
            (1, 1, "o"),
            (1, 5, "k"),
            (1, 6, "s"),
            (1, 7, "."),
            (1, 8, "k"),
            (2, 2, "o"),
            (2, 7, "s"),
            (2, 8, "."),
            (2, 9, "k"),
        ] {
            assert_eq!(
                browser.evaluate(&format!("group({row}, {at})")),
                group,
                "{row} #{at} {dark}"
            );
        }
    }
    let axes =
        browser.evaluate("[...document.querySelectorAll('#axis option')].map((o) => o.text)");
    assert_eq!(axes, json!(["issue order"]));
}

#[test]
#[ignore = "needs Chromium"]
fn timeline_is_zoomed_and_leads_to_findings() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let page = bench.page(&corpus("recorded/racy/torch_unordered.db"), &[]);
    browser.open(&page, Look::DESK);
    browser.evaluate(ON_THE_TIMELINE);
    let pair = |value: serde_json::Value| {
        let at = |n: usize| value[n].as_f64().expect("a number");
        (at(0), at(1))
    };
    let whole = pair(browser.evaluate("drawn().then(() => press('0'))"));
    let near = pair(browser.evaluate("press('+')"));
    assert!(near.1 < whole.1 * 0.6 && near.0 > whole.0, "{whole:?} {near:?}");
    let moved = pair(browser.evaluate("press('ArrowRight')"));
    assert!(moved.0 > near.0 && (moved.1 - near.1).abs() < 1e-9, "{near:?} {moved:?}");
    assert_eq!(pair(browser.evaluate("press('0')")), whole);
    // The next finding is framed, and its mark leads to it.
    browser.evaluate("document.querySelector('.finding').open = false");
    let framed = pair(browser.evaluate("press('n')"));
    assert!(framed.0 > whole.0 && framed.1 < whole.1, "{whole:?} {framed:?}");
    let sides = browser.evaluate("[place(297), place(308)]");
    let width = browser.evaluate("document.getElementById('lanes').clientWidth");
    let inside = |x: &serde_json::Value| x.as_f64() > Some(170.0) && x.as_f64() < width.as_f64();
    assert!(inside(&sides[0]) && inside(&sides[1]), "{sides} in {width}");
    let corner = browser.evaluate(
        "(() => {
           const canvas = document.getElementById('lanes');
           canvas.scrollIntoView({ block: 'start' });
           const at = canvas.getBoundingClientRect();
           return [at.left + place(297) + 2, at.top + 26 + 9];
         })()",
    );
    let corner = pair(corner);
    let press = json!({"button": "left", "clickCount": 1});
    browser.mouse("mousePressed", corner, press.clone());
    browser.mouse("mouseReleased", corner, press);
    browser.wait_until("location.hash === '#f-f11n7qj4'");
    browser.wait_until("document.querySelector('.finding').open");
    // The other axis has its own ends.
    let axes =
        browser.evaluate("[...document.querySelectorAll('#axis option')].map((o) => o.text)");
    assert_eq!(axes, json!(["issue order", "host issue time"]));
    let times = browser.evaluate(
        "(() => {
           const axis = document.getElementById('axis');
           axis.selectedIndex = 1;
           axis.dispatchEvent(new Event('change'));
           return press('0');
         })()",
    );
    assert!(pair(times.clone()).1 > whole.1 * 1000.0, "nanoseconds: {times}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn operations_have_the_names_by_which_the_program_called() {
    let bench = Bench::new();
    let page = bench.page(&corpus("recorded/racy/unordered_copy.db"), &[]);
    let page = fs::read_to_string(page).expect("a page");
    let (_, data) = page.split_once("application/json\">").expect("data of the timeline");
    let (data, _) = data.split_once("</script>").expect("it ends");
    let data: serde_json::Value = serde_json::from_str(data).expect("JSON");
    let names = data["names"].as_array().expect("names");
    for name in ["Fill", "cudaMemcpyAsync", "cudaMalloc"] {
        assert!(names.contains(&json!(name)), "{name}: {names:?}");
    }
    assert!(!data.to_string().contains("cuMemcpy"), "{names:?}");
}

#[test]
#[ignore = "needs Chromium"]
fn memory_and_statistics_are_counted() {
    let bench = Bench::new();
    let mut browser = Browser::start();
    let page = bench.page_of(
        "stream a nonblocking\nstream b nonblocking\nalloc big 65536\nalloc gone 32768\n\
         launch a produce w:big\nlaunch b consume r:big\nlaunch b consume r:big\nfree gone\nsync_ctx\n",
        &[],
    );
    for scripts in [true, false] {
        browser.open(&page, Look { scripts, ..Look::DESK });
        let text = |browser: &mut Browser, what: &str| {
            let found = browser.evaluate(&format!("document.querySelector({what:?}).textContent"));
            found.as_str().expect("a text").to_owned()
        };
        let caption = text(&mut browser, "#memory figcaption");
        assert!(caption.ends_with("at most 96.0 KiB, at #4; 64.0 KiB at the end"), "{caption}");
        let areas = browser.evaluate(
            "[...document.querySelectorAll('.chart path:not(.ticks)')].map((area) => {
               const box = area.getBBox();
               return [Math.round(box.height), box.x + box.width > 900];
             })",
        );
        // The chart has 150 pixels: two thirds to the end, one third that ends before.
        assert_eq!(areas, json!([[100, true], [50, false]]));
        let first = text(&mut browser, "#memory tbody tr");
        for part in
            ["big (allocation 0)", "64.0 KiB", "from #3", "\"a\": 1 write", "\"b\": 2 reads"]
        {
            assert!(first.contains(part), "{part}: {first}");
        }
        let all = text(&mut browser, "#memory tbody");
        assert!(all.contains("gone (allocation 1)") && all.contains("#4 to #8"), "{all}");
        let counted = text(&mut browser, "#statistics");
        for part in ["missing-wait, certain12", "`big`, cuMemAlloc12", "produce / consume12"] {
            assert!(counted.contains(part), "{part}: {counted}");
        }
        assert!(counted.contains("cuLaunchKernel30"), "{counted}");
    }
}
