//! How a process uses the resource that its lock guards.

use lockattr_tests::ResourceFile;

use crate::arguments::Arguments;

pub(super) struct Desk {
    resource: ResourceFile,
    /// The token of the last read, and the counter that it read.
    read: Option<(u64, u64)>,
}

impl Desk {
    pub(super) fn by(arguments: &Arguments) -> Result<Self, String> {
        let path: String = arguments.get_or("resource", String::new())?;
        let compares_tokens = arguments.get_or("compares_tokens", false)?;
        let resource = ResourceFile::at(path).comparing_tokens(compares_tokens);
        Ok(Self { resource, read: None })
    }

    /// Returns whether the resource allows it.
    pub(super) fn reads(&mut self, token: u64) -> bool {
        self.read = self.resource.read(token).map(|count| (token, count));
        self.read.is_some()
    }

    /// Returns whether the resource allows it.
    pub(super) fn writes(&mut self) -> Result<bool, &'static str> {
        let (token, count) = self.read.take().ok_or("nothing was read")?;
        Ok(self.resource.write(count + 1, token))
    }
}
