//! One real program and what it is made to do.

/// A shell script that gives the same output, exit code and files every time it runs natively.
#[derive(Clone, Copy, Debug)]
pub struct Case {
    pub name: &'static str,
    /// Programs that must be there.
    pub needs: &'static [&'static str],
    /// Debian packages that have them.
    pub packages: &'static [&'static str],
    /// Run natively first, for both runs.
    pub setup: &'static str,
    pub script: &'static str,
    /// Further options of `fencepost record`.
    pub options: &'static [&'static str],
    /// Whether the files it leaves are compared too.
    pub files: bool,
    /// Part of `--quick`.
    pub quick: bool,
}

impl Case {
    pub const fn new(name: &'static str, needs: &'static [&'static str], script: &'static str) -> Case {
        Case { name, needs, packages: needs, setup: "", script, options: &[], files: true, quick: false }
    }

    pub const fn packages(mut self, packages: &'static [&'static str]) -> Case {
        self.packages = packages;
        self
    }

    pub const fn setup(mut self, setup: &'static str) -> Case {
        self.setup = setup;
        self
    }

    /// Its output depends on a clock that goes on by itself.
    pub const fn real_time(mut self) -> Case {
        self.options = &["--real-time"];
        self
    }

    /// Its files hold time stamps or process ids.
    pub const fn without_files(mut self) -> Case {
        self.files = false;
        self
    }

    pub const fn quick(mut self) -> Case {
        self.quick = true;
        self
    }
}
