//! Programs for which the system's resolver reads files of the test's, in a mount namespace of their own.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use lockattr_tests::{Node, eventually};
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use tempfile::TempDir;
use tokio::net::unix::pipe;

/// The name that has the addresses. Certificates of the harness are for it.
pub(super) const NAME: &str = "localhost";

/// Puts each file of the directory over that of the same name in `/etc`, and becomes the program.
const SCRIPT: &str = "for file in \"$0\"/*; do \
                      mount --bind \"$file\" /etc/\"${file##*/}\" || exit; done; exec \"$@\"";

/// What the resolver reads.
pub(super) struct Resolver(TempDir);

impl Resolver {
    /// The name has the addresses `::1` and `127.0.0.1`, which the system tries in this order.
    pub(super) fn new() -> Self {
        let files = TempDir::with_prefix("lockattr-").expect("a temporary directory");
        let hosts = format!("::1 {NAME}\n127.0.0.1 {NAME}\n");
        fs::write(files.path().join("hosts"), hosts).expect("our own directory");
        let resolver = Self(files);
        let found = resolver.command("getent").args(["ahosts", NAME]).output();
        let found = found.expect("`unshare` starts; by hand: `apt-get install util-linux`");
        assert!(
            found.status.success(),
            "the test needs a mount namespace and `getent`: run it as root, in a container with \
             `--privileged`; or permit user namespaces (`sysctl \
             kernel.apparmor_restrict_unprivileged_userns=0` on Ubuntu): {}",
            String::from_utf8_lossy(&found.stderr)
        );
        let found = String::from_utf8_lossy(&found.stdout).into_owned();
        assert!(
            found.starts_with("::1 "),
            "the system prefers IPv4: enable IPv6 on the loopback interface (`sysctl \
             net.ipv6.conf.lo.disable_ipv6=0`), and let `/etc/gai.conf` prefer nothing: {found}"
        );
        resolver
    }

    /// Starts a node that locks over this URL.
    pub(super) fn node(&self, url: &str, more: &[String]) -> Node {
        let mut command = self.command(env!("CARGO_BIN_EXE_node"));
        command.args(["lock", &format!("url={url}")]).args(more);
        Node::run(command)
    }

    /// From now on, the resolver waits with each look-up for the other end of a pipe to be opened and closed.
    pub(super) fn slow(&self) -> SlowFile {
        let path = self.0.path().join("resolv.conf");
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).expect("our own directory");
        SlowFile(path)
    }

    fn command(&self, program: &str) -> Command {
        let mut command = Command::new("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", SCRIPT]);
        command.arg(self.0.path()).arg(program);
        command
    }
}

/// A file of the resolver's that is a pipe.
pub(super) struct SlowFile(PathBuf);

impl SlowFile {
    /// Returns once a look-up reads the file, which does not end before the returned value is dropped.
    pub(super) async fn look_up(&self) -> pipe::Sender {
        let mut opened = None;
        eventually("a name is looked up", async || {
            // It fails while no look-up reads.
            opened = pipe::OpenOptions::new().open_sender(&self.0).ok();
            opened.is_some()
        })
        .await;
        opened.expect("opened")
    }
}
