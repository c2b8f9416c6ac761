//! One annotated function as its attribute is written, and the list of them.

use std::fmt;

/// An annotated function: what its attribute says, and where it stands.
///
/// It shows itself in one line, to be printed for operators or pinned in a test; the example stands
/// at [`registry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnnotatedLock {
    /// What its locks are called together, in spans, metrics and records: the template, or those of
    /// several keys with commas between.
    pub template: &'static str,
    /// The template of each key; for `key = expression` the expression.
    pub keys: &'static [&'static str],
    /// The other options by their names, each as it is written: `("ttl", "\"10s\"")`.
    pub options: &'static [(&'static str, &'static str)],
    /// The function and the module it is in: `shop::sale::deduct`. Of a method, the type is not
    /// known.
    pub function: &'static str,
    /// The file in which the attribute stands, as the compiler was told to name it.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
}

impl AnnotatedLock {
    /// What is written for an option, if it is.
    ///
    /// ```
    /// # use lockattr::{Error, distributed_lock};
    /// #[distributed_lock(key = "report:quarter", ttl = "10s")]
    /// async fn report() -> Result<(), Error> {
    ///     Ok(())
    /// }
    ///
    /// let report = lockattr::registry().into_iter().find(|lock| lock.template == "report:quarter").unwrap();
    /// assert_eq!(report.option("ttl"), Some("\"10s\""));
    /// assert_eq!(report.option("wait"), None);
    /// ```
    pub fn option(&self, name: &str) -> Option<&'static str> {
        let written = self.options.iter().find(|(option, _)| *option == name);
        written.map(|(_, value)| *value)
    }
}

/// `src/shop.rs:17: shop::deduct locks product:<id> (ttl = "10s", retry = 10)`
impl fmt::Display for AnnotatedLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { template, options, function, file, line, .. } = self;
        write!(f, "{file}:{line}: {function} locks {template}")?;
        for (index, (option, value)) in options.iter().enumerate() {
            let before = if index == 0 { " (" } else { ", " };
            write!(f, "{before}{option} = {value}")?;
        }
        if options.is_empty() { Ok(()) } else { f.write_str(")") }
    }
}

/// All annotated functions of the program, by file and line.
///
/// Of every crate that is linked into it, whether or not anything calls them: those of libraries
/// too, and of the tests in a test program.
///
/// ```
/// use lockattr::{Error, distributed_lock};
///
/// #[distributed_lock(key = "product:<id>", ttl = "10s", retry = 10)]
/// async fn deduct(id: u64) -> Result<(), Error> {
///     Ok(())
/// }
///
/// // For operators.
/// for lock in lockattr::registry() {
///     println!("{lock}");
/// }
/// ```
///
/// In a test, that no lease is left to the default, and no two functions share a template by
/// accident:
///
/// ```no_run
/// # fn all_have_a_ttl_and_a_template_of_their_own() {
/// let locks = lockattr::registry();
/// assert!(locks.iter().all(|lock| lock.option("ttl").is_some()), "{locks:#?}");
///
/// let mut templates: Vec<_> = locks.iter().map(|lock| lock.template).collect();
/// templates.sort();
/// assert!(templates.windows(2).all(|pair| pair[0] != pair[1]), "shared: {templates:?}");
/// # }
/// ```
pub fn registry() -> Vec<&'static AnnotatedLock> {
    let mut locks: Vec<_> = ANNOTATED.iter().collect();
    locks.sort_by_key(|lock| (lock.file, lock.line, lock.function));
    locks
}

/// Where the linker puts them together.
#[linkme::distributed_slice]
pub static ANNOTATED: [AnnotatedLock];

/// What an attribute expands to: in other crates the fields alone make no value.
pub const fn annotated(
    template: &'static str,
    keys: &'static [&'static str],
    options: &'static [(&'static str, &'static str)],
    function: &'static str,
    (file, line): (&'static str, u32),
) -> AnnotatedLock {
    AnnotatedLock { template, keys, options, function, file, line }
}
