//! What kind of file a program is.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rustix::process::geteuid;

/// Why the dynamic linker does not preload a library (`LD_PRELOAD`) into a program, if it does not.
pub(crate) fn reason_not_preloaded(program: &Path) -> Option<&'static str> {
    let path = if program.components().count() > 1 {
        program.to_owned()
    } else {
        let folders = std::env::var_os("PATH")?;
        std::env::split_paths(&folders)
            .map(|folder| folder.join(program))
            .find(|path| path.is_file())?
    };
    let mode = std::fs::metadata(&path).ok()?.permissions().mode();
    if mode & 0o6000 != 0 && !geteuid().is_root() {
        return Some("takes another user's or group's rights (setuid)");
    }
    is_static(&mut File::open(path).ok()?).ok()?.then_some("is statically linked")
}

/// Whether a program is an ELF file of 64 bits that names no dynamic linker (ELF-64 Object File Format, 1998).
fn is_static(file: &mut (impl Read + Seek)) -> io::Result<bool> {
    const PT_INTERP: u32 = 3;
    let mut header = [0; 64];
    file.read_exact(&mut header)?;
    if !header.starts_with(b"\x7fELF\x02") {
        return Ok(false);
    }
    let u16_at = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
    let table: [u8; 8] = header[32..40].try_into().unwrap_or_default();
    let (table, bytes, count) = (u64::from_ne_bytes(table), u16_at(54), u16_at(56));
    for index in 0..u64::from(count) {
        let mut kind = [0; 4];
        file.seek(SeekFrom::Start(table.saturating_add(index * u64::from(bytes))))?;
        file.read_exact(&mut kind)?;
        if u32::from_ne_bytes(kind) == PT_INTERP {
            return Ok(false);
        }
    }
    Ok(count != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_without_a_dynamic_linker_is_static() {
        let file = |headers: &[u32]| {
            let mut elf = vec![0; 64 + 56 * headers.len()];
            elf[..5].copy_from_slice(b"\x7fELF\x02");
            elf[32] = 64;
            elf[54] = 56;
            elf[56] = headers.len() as u8;
            for (index, kind) in headers.iter().enumerate() {
                elf[64 + 56 * index..][..4].copy_from_slice(&kind.to_ne_bytes());
            }
            is_static(&mut io::Cursor::new(elf)).ok()
        };
        assert_eq!(file(&[1, 2]), Some(true));
        assert_eq!(file(&[6, 3, 1]), Some(false), "PT_INTERP");
        assert_eq!(file(&[]), Some(false), "not a program");
        assert_eq!(reason_not_preloaded(&std::env::current_exe().expect("this test")), None);
        assert_eq!(reason_not_preloaded(Path::new("no-such-program")), None);
    }
}
