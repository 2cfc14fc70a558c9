//! Whether a program can be recorded. Nothing of it is run.

use super::{Diagnosis, bad, good, note};
use crate::launch::{inspect, needed};
use std::path::Path;

/// Checks of the program by its file.
pub(super) fn program(file: &Path) -> Vec<Diagnosis> {
    let shown = file.display();
    let can = match inspect(file) {
        Some(obstacle) => {
            bad("program", format!("{shown} cannot be recorded: {}", obstacle.description()))
        }
        None => good("program", format!("{shown} can be recorded")),
    };
    let way = match needed(file) {
        Some(libraries) => {
            let has = |name: &str| libraries.iter().any(|library| library.starts_with(name));
            if has("libcuda.so") {
                good("program-driver", format!("{shown} is linked with the driver directly"))
            } else if has("libcudart.so") {
                good("program-driver", format!("{shown} is linked with CUDA's runtime library"))
            } else {
                let text = "it names no library of CUDA; libraries that it loads, or code that \
                            is linked into it, may come to the driver all the same";
                note("program-driver", format!("{shown}: {text}"))
            }
        }
        None => note(
            "program-driver",
            format!("{shown} is no program of its own; what runs it is looked at instead"),
        ),
    };
    vec![can, way]
}
