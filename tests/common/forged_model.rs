//! Model files and checkpoints whose sections are changed, with right checksums: what a hostile writer would make.

use std::fs;
use std::path::Path;

const HEAD_LEN: usize = 64;
const TABLE_ROW_LEN: usize = 64;
const NAME_LEN: usize = 40;

/// The sections of a file, by name.
#[derive(Clone)]
pub struct ForgedModel {
    head: Vec<u8>,
    pub sections: Vec<(String, Vec<u8>)>,
}

impl ForgedModel {
    /// Reads all sections of a valid file.
    pub fn read(path: &Path) -> ForgedModel {
        ForgedModel::from_bytes(&fs::read(path).unwrap()).expect("a file with sections")
    }

    /// Reads all sections, whatever they contain. `None` if the table or a section does not lie in the file.
    pub fn from_bytes(bytes: &[u8]) -> Option<ForgedModel> {
        let number = |at: usize| u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize;
        let head = bytes.get(..HEAD_LEN)?.to_vec();
        let count = u32::from_le_bytes(head[12..16].try_into().unwrap()) as usize;
        let section = |k: usize| {
            let row = HEAD_LEN + TABLE_ROW_LEN * k;
            let name = bytes.get(row..row + TABLE_ROW_LEN)?;
            let name = String::from_utf8_lossy(&name[..NAME_LEN]);
            let (offset, len) = (number(row + NAME_LEN), number(row + NAME_LEN + 8));
            let contents = bytes.get(offset..offset.checked_add(len)?)?.to_vec();
            Some((name.trim_end_matches('\0').to_string(), contents))
        };
        Some(ForgedModel {
            head,
            sections: (0..count).map(section).collect::<Option<_>>()?,
        })
    }

    /// Removes a section, which must exist.
    pub fn remove(mut self, name: &str) -> ForgedModel {
        let before = self.sections.len();
        self.sections.retain(|(n, _)| n != name);
        assert_eq!(self.sections.len() + 1, before, "no section {name}");
        self
    }

    /// Returns the contents of a section, which must exist.
    pub fn section_mut(&mut self, name: &str) -> &mut Vec<u8> {
        let found = self.sections.iter_mut().find(|(n, _)| n == name);
        &mut found.unwrap_or_else(|| panic!("no section {name}")).1
    }

    /// Replaces a text of a section, which must contain it.
    pub fn replace_text(mut self, name: &str, from: &str, to: &str) -> ForgedModel {
        let section = self.section_mut(name);
        let text = String::from_utf8(section.clone()).unwrap();
        assert!(text.contains(from), "{text}");
        *section = text.replace(from, to).into_bytes();
        self
    }

    /// Sets every float of a section.
    pub fn fill(mut self, name: &str, value: f32) -> ForgedModel {
        for float in self.section_mut(name).chunks_exact_mut(4) {
            float.copy_from_slice(&value.to_le_bytes());
        }
        self
    }

    /// Writes the file, with right offsets, lengths and checksums.
    pub fn write(&self, path: &Path) {
        fs::write(path, self.to_bytes()).unwrap();
    }

    /// Returns the bytes of the file, with right offsets, lengths and checksums.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut table = Vec::new();
        let mut contents = Vec::new();
        let start = HEAD_LEN + TABLE_ROW_LEN * self.sections.len();
        for (name, bytes) in &self.sections {
            let end = (start + contents.len()).next_multiple_of(64);
            contents.resize(end - start, 0);
            let mut row = [0; TABLE_ROW_LEN];
            let name_len = name.len().min(NAME_LEN);
            row[..name_len].copy_from_slice(&name.as_bytes()[..name_len]);
            row[NAME_LEN..][..8].copy_from_slice(&(end as u64).to_le_bytes());
            row[NAME_LEN + 8..][..8].copy_from_slice(&(bytes.len() as u64).to_le_bytes());
            row[NAME_LEN + 16..][..4].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
            table.extend_from_slice(&row);
            contents.extend_from_slice(bytes);
        }
        let mut head = self.head.clone();
        head[12..16].copy_from_slice(&(self.sections.len() as u32).to_le_bytes());
        head[16..24].copy_from_slice(&((start + contents.len()) as u64).to_le_bytes());
        let checksum = head_checksum(&head, &table);
        head[56..60].copy_from_slice(&checksum.to_le_bytes());
        [head, table, contents].concat()
    }
}

fn head_checksum(head: &[u8], table: &[u8]) -> u32 {
    let mut crc = crc32fast::Hasher::new();
    crc.update(&head[..56]);
    crc.update(table);
    crc.finalize()
}
