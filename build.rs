//! Gives the shared library its name for the loader. Writes nothing.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let unix = std::env::var("CARGO_CFG_TARGET_FAMILY").is_ok_and(|f| f == "unix");
    let apple = std::env::var("CARGO_CFG_TARGET_VENDOR").is_ok_and(|v| v == "apple");
    if unix && !apple {
        // While the major number is 0, versions with the same minor number are compatible.
        let number = |part: &str| std::env::var(format!("CARGO_PKG_VERSION_{part}")).unwrap();
        let version = match number("MAJOR").as_str() {
            "0" => format!("0.{}", number("MINOR")),
            major => major.to_string(),
        };
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libs3cmtf.so.{version}");
    }
}
