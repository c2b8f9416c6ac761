//! One annotated function with its attribute as written, and the list of all.

use std::fmt;

/// An annotated function: its attribute as written, and its place in the source.
///
/// Its `Display` is one line, for operators or to be pinned in a test; see the example at
/// [`registry`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AnnotatedLock {
    /// The common name of its locks in spans, metrics and records: the template, or several
    /// templates separated by commas.
    pub template: &'static str,
    /// The template of each key; for `key = expression`, the expression.
    pub keys: &'static [&'static str],
    /// The other options by name, each as written: `("ttl", "\"10s\"")`.
    pub options: &'static [(&'static str, &'static str)],
    /// The function with its module: `shop::sale::deduct`. For a method, the type is not known.
    pub function: &'static str,
    /// The file of the attribute, as the compiler was told to name it.
    pub file: &'static str,
    /// The line of the attribute.
    pub line: u32,
}

impl AnnotatedLock {
    /// The value of an option as written, if it is set.
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
/// Includes every crate that is linked into the program, whether or not the functions are called:
/// libraries too, and the tests in a test program.
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
/// A test can check that no lease has the default TTL, and that no two functions share a template
/// by accident:
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

/// The slice that the linker fills.
#[linkme::distributed_slice]
pub static ANNOTATED: [AnnotatedLock];

/// The value that an attribute expands to. Its fields alone do not suffice to make one in another
/// crate.
pub const fn annotated(
    template: &'static str,
    keys: &'static [&'static str],
    options: &'static [(&'static str, &'static str)],
    function: &'static str,
    (file, line): (&'static str, u32),
) -> AnnotatedLock {
    AnnotatedLock { template, keys, options, function, file, line }
}
