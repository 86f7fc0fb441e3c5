//! A kernel image for PCs (`bzImage`) as the lab's kernel: its header, its configuration, and the virtual machine that boots
//! it.
//!
//! QEMU emulates the processor and counts instructions: an instruction takes a nanosecond of the guest's time, and the clock
//! of an idle guest jumps to its next timer (`-icount shift=0,sleep=off`). So the load of this machine affects no result,
//! and computing takes as long as on a processor with a thousand million instructions per second. The guest's root is this
//! machine's, read-only, by 9P.

use crate::guest_kernel::{Configuration, on_path};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The program of the virtual machine.
const QEMU: &str = "qemu-system-x86_64";
/// Options without which the guest finds neither its files nor the lab's network.
const REQUIRED: [&str; 8] =
    ["9P_FS", "NET_9P_VIRTIO", "VIRTIO_PCI", "SERIAL_8250_CONSOLE", "DEVTMPFS", "TMPFS", "NET_NS", "VETH"];
/// The word in a guest's command line that distinguishes it from other machines.
pub(crate) const GUEST: &str = "ropewalk_lab_guest";
/// Offset and value of the signature in a header, and offset of the version (Linux, Documentation/arch/x86/boot.rst).
const SIGNATURE: (usize, &[u8]) = (0x202, b"HdrS");
const VERSION: usize = 0x20e;

/// Whether a file is a kernel image for PCs.
pub(crate) fn is_image(file: &Path) -> bool {
    fs::read(file).is_ok_and(|bytes| bytes[SIGNATURE.0.min(bytes.len())..].starts_with(SIGNATURE.1))
}

/// The release and the configuration of an image. The configuration is a file next to it.
pub(crate) fn read(image: &Path) -> Result<(String, Configuration), String> {
    if on_path(QEMU).is_none() {
        return Err(format!("{QEMU}, which boots it, is missing (Debian: apt-get install qemu-system-x86)"));
    }
    let bytes = fs::read(image).map_err(|error| error.to_string())?;
    let release = release(&bytes).ok_or("its header has no version")?;
    let candidates = configurations(image, &release);
    let text = candidates.iter().find_map(|file| fs::read_to_string(file).ok()).ok_or_else(|| {
        let names: Vec<_> = candidates.iter().map(|file| file.display().to_string()).collect();
        format!("its configuration is at none of {}", names.join(", "))
    })?;
    let configuration = Configuration::without_modules(text);
    let missing: Vec<String> = REQUIRED
        .iter()
        .filter(|option| !configuration.has(option))
        .map(|option| format!("CONFIG_{option}=y"))
        .collect();
    match missing.is_empty() {
        true => Ok((release, configuration)),
        false => Err(format!("the lab loads no modules, and it was built without {}", missing.join(", "))),
    }
}

/// The release in an image's header.
fn release(bytes: &[u8]) -> Option<String> {
    let offset = u16::from_le_bytes(bytes.get(VERSION..VERSION + 2)?.try_into().ok()?);
    let text = bytes.get(0x200 + usize::from(offset)..)?;
    let end = text.iter().position(|byte| matches!(byte, b' ' | 0))?;
    String::from_utf8(text[..end].to_vec()).ok().filter(|release| release.starts_with(|c: char| c.is_ascii_digit()))
}

/// The places where an image's configuration may be: next to it, in the sources that it was built in, or in `/boot`.
fn configurations(image: &Path, release: &str) -> Vec<PathBuf> {
    let name = format!("config-{release}");
    let mut files = vec![image.with_file_name(&name)];
    files.extend(image.ancestors().nth(4).map(|sources| sources.join(".config"))); // arch/x86/boot/bzImage
    files.push(Path::new("/boot").join(name));
    files
}

/// The virtual machine that boots an image with `folder/init` as its first process, and that can write to `folder`. The
/// guest's output is in the file `console` there.
pub(crate) fn command(image: &Path, folder: &Path) -> Command {
    let dir = folder.display();
    let settings = format!(
        "console=ttyS0 quiet panic=-1 ro root=/dev/root rootfstype=9p \
         rootflags=trans=virtio,version=9p2000.L,cache=loose,msize=262144 init={dir}/init {GUEST}"
    );
    let mut command = Command::new(QEMU);
    command.args(["-accel", "tcg", "-icount", "shift=0,sleep=off", "-cpu", "max", "-m", "512", "-smp", "1"]);
    command.args(["-nodefaults", "-display", "none", "-no-reboot", "-serial"]);
    command.arg(format!("file:{}", folder.join("console").display())).arg("-kernel").arg(image);
    command.args(["-append", &settings]);
    let shares = [("/dev/root", "/".to_owned(), ",readonly=on"), ("run", dir.to_string(), "")];
    for (tag, path, options) in shares {
        let id = tag.trim_start_matches("/dev/");
        command.arg("-fsdev").arg(format!(
            "local,id={id},path={},security_model=none,multidevs=remap{options}",
            path.replace(',', ",,")
        ));
        command.arg("-device").arg(format!("virtio-9p-pci,fsdev={id},mount_tag={tag}"));
    }
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A header as Linux's boot protocol lays it out.
    fn image(version: &str) -> Vec<u8> {
        let mut bytes = vec![0; 0x400];
        bytes[0x202..0x206].copy_from_slice(b"HdrS");
        bytes[0x20e..0x210].copy_from_slice(&0x100_u16.to_le_bytes());
        bytes[0x300..0x300 + version.len()].copy_from_slice(version.as_bytes());
        bytes
    }

    #[test]
    fn the_release_is_read_from_the_header() {
        assert_eq!(release(&image("6.19.0-rc1+ (me@here) #2 SMP")).as_deref(), Some("6.19.0-rc1+"));
        for damaged in [&image("")[..], b"HdrS", &image("none")[..], &image("6.1 ")[..0x300]] {
            assert_eq!(release(damaged), None);
        }
    }

    #[test]
    fn a_configuration_is_looked_for_beside_the_image_and_in_its_sources() {
        let files = configurations(Path::new("/src/linux/arch/x86/boot/bzImage"), "6.1.0");
        let expected = ["/src/linux/arch/x86/boot/config-6.1.0", "/src/linux/.config", "/boot/config-6.1.0"];
        assert_eq!(files, expected.map(PathBuf::from));
    }

    #[test]
    fn an_image_without_what_the_lab_needs_is_refused_by_its_options() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("bzImage");
        fs::write(&file, image("6.1.0 x")).unwrap();
        assert!(is_image(&file) && !is_image(folder.path()));
        if on_path(QEMU).is_none() {
            return assert!(read(&file).unwrap_err().contains(QEMU));
        }
        assert!(read(&file).unwrap_err().contains("config-6.1.0"));
        fs::write(folder.path().join("config-6.1.0"), "CONFIG_9P_FS=m\nCONFIG_VETH=y\n").unwrap();
        let error = read(&file).unwrap_err();
        assert!(error.contains("CONFIG_9P_FS=y") && !error.contains("CONFIG_VETH=y"), "{error}");
    }
}
