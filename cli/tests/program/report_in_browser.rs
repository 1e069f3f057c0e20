//! Reports in headless Chromium. Prints a line and skips where it is not installed, unless S3CMTF_REQUIRE_CHROMIUM is set.
#![cfg(target_os = "linux")]

use std::path::Path;
use std::process::{Command, Stdio};

use crate::common::Scratch;
use crate::sample_reports::sample_reports;
use serde_json::Value;

/// Widths of a telephone and of a desktop window, in pixels.
const WIDTHS: [u32; 2] = [390, 1280];

/// Shows each page of `PAGES` in a frame of each width. Collects elements wider than the frame, figures without a size,
/// clipped labels of figures, and resources loaded from elsewhere.
const MEASURE_SCRIPT: &str = r#"
const found = [];
async function show(name, html, width) {
  const frame = document.createElement('iframe');
  frame.style.cssText = `width:${width}px;height:900px;border:0`;
  const loaded = new Promise(done => frame.onload = done);
  frame.srcdoc = html;
  document.body.append(frame);
  await loaded;
  const page = frame.contentDocument, view = frame.contentWindow;
  const say = what => found.push(`${name} at ${width}: ${what}`);
  if (page.scrollingElement.scrollWidth > width) say(`scrolls to ${page.scrollingElement.scrollWidth}`);
  const within = e => e.closest('.scroll') || e.closest('svg') !== e && e.closest('svg');
  for (const e of page.body.querySelectorAll('*')) {
    const box = e.getBoundingClientRect();
    if (!within(e) && (box.right > width + 0.5 || box.left < -0.5)) say(`<${e.tagName} class="${e.className}"> from ${box.left} to ${box.right}`);
    // Words must not be squeezed into columns of single letters.
    if (['P', 'TD', 'TH', 'LI', 'H4'].includes(e.tagName) && e.textContent.trim().length > 12 && box.width < 40 && box.height > 0) say(`<${e.tagName}> is ${box.width} wide: ${e.textContent.slice(0, 40)}`);
  }
  const pictures = page.querySelectorAll('svg');
  if (pictures.length < 2) say(`${pictures.length} pictures`);
  for (const svg of pictures) {
    const box = svg.getBoundingClientRect();
    if (!(box.width > 20 && box.height > 10)) say(`a picture of ${box.width} x ${box.height}: ${svg.ariaLabel}`);
    const all = svg.viewBox.baseVal;
    for (const text of svg.querySelectorAll('text')) {
      const own = text.getBBox();
      if (own.x < -1 || own.x + own.width > all.width + 1 || own.y < -2 || own.y + own.height > all.height + 4) say(`cut off: ${text.textContent} of ${svg.ariaLabel}`);
    }
  }
  for (const image of page.images) if (!image.naturalWidth) say(`missing picture ${image.src}`);
  for (const r of view.performance.getEntriesByType('resource')) say(`loads ${r.name}`);
  if (page.scripts.length) say('has scripts');
  const style = view.getComputedStyle(page.body);
  if (style.color === style.backgroundColor) say('cannot be read');
  frame.remove();
}
window.onerror = what => { found.push(`error: ${what}`); };
(async () => {
  let shown = 0;
  for (const [name, html] of PAGES) for (const width of WIDTHS) { await show(name, html, width); shown++; }
  document.body.textContent = 'MEASURED' + JSON.stringify({shown, found}) + 'END';
})();
"#;

fn chromium() -> Option<&'static str> {
    let is_installed = |name: &&str| {
        let run = Command::new(name)
            .arg("--version")
            .stderr(Stdio::null())
            .output();
        run.is_ok_and(|o| o.status.success())
    };
    let found = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(is_installed);
    if found.is_none() {
        assert!(
            std::env::var_os("S3CMTF_REQUIRE_CHROMIUM").is_none(),
            "Chromium is required"
        );
        println!("skipped: Chromium is not installed");
    }
    found
}

/// Loads a page. Returns the resulting DOM and the log of the browser.
fn load(browser: &str, dir: &Scratch, page: &Path, arguments: &[&str]) -> (String, String) {
    let run = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--no-first-run",
        ])
        .args([
            "--enable-logging=stderr",
            "--virtual-time-budget=60000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", dir.join("profile").display()))
        .args(arguments)
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(run.status.success(), "{}", text(&run.stderr));
    (text(&run.stdout), text(&run.stderr))
}

#[test]
fn reports_fit_narrow_and_wide_screens() {
    let Some(browser) = chromium() else {
        return;
    };
    let dir = Scratch::new("browser");
    let pages = sample_reports(2);
    let list = serde_json::to_string(&pages)
        .unwrap()
        .replace('<', "\\u003c");
    let script = format!("const WIDTHS = {WIDTHS:?}, PAGES = {list};\n{MEASURE_SCRIPT}");
    let wrapper =
        format!("<!DOCTYPE html><meta charset=\"utf-8\"><body><script>{script}</script></body>");
    let path = dir.file("wrapper.html", wrapper);
    for scheme in [
        "--blink-settings=preferredColorScheme=1",
        "--blink-settings=preferredColorScheme=0",
    ] {
        let (dom, log) = load(browser, &dir, &path, &[scheme]);
        let measured = dom
            .split("MEASURED")
            .last()
            .and_then(|m| m.split("END").next());
        let measured: Value =
            serde_json::from_str(measured.unwrap()).unwrap_or_else(|e| panic!("{e}: {dom} {log}"));
        assert_eq!(measured["shown"], pages.len() * WIDTHS.len());
        let found = measured["found"].as_array().unwrap();
        assert!(
            found.is_empty(),
            "{} problems:\n{}",
            found.len(),
            found
                .iter()
                .take(30)
                .map(Value::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        );
        assert!(!log.contains("CONSOLE"), "{log}");
    }
}

#[test]
fn report_opened_from_disk_logs_no_errors() {
    let Some(browser) = chromium() else {
        return;
    };
    let dir = Scratch::new("browser-console");
    // Checks that errors of a page are logged at all.
    let path = dir.file(
        "loud.html",
        "<script>console.error('loud'); undefined_function()</script>",
    );
    let (_, log) = load(browser, &dir, &path, &[]);
    assert!(
        log.contains("CONSOLE") && log.contains("undefined_function"),
        "{log}"
    );
    let (name, page) = &sample_reports(1)[0];
    let path = dir.file("page.html", page);
    let (dom, log) = load(browser, &dir, &path, &[]);
    assert!(!log.contains("CONSOLE"), "{name}: {log}");
    assert!(
        dom.contains("id=\"settings\"") && !dom.contains("<script"),
        "{name}"
    );
}
