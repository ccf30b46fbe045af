// IDX files (yann.lecun.com/exdb/mnist), big-endian: two zero bytes, type 8 (u8), the number of dimensions, each
// dimension as u32, the values.
#pragma once

#include <vector>

#include "remote/published_files.hpp"

namespace dtrain::data {

struct IdxArray {
  SourceBytes file;
  std::vector<std::uint64_t> shape;
  ByteView values;
};

// Throws DataError for another type or number of dimensions, and for damage. `file` is unpacked.
IdxArray parse_idx(SourceBytes file, std::size_t dimensions);
// 0: it is none of bytes.
std::size_t idx_dimensions(ByteView file);

// The file's bytes, unpacked if it is a gzip file.
SourceBytes open_idx_file(const Path& file);
bool is_idx(const Path& file);

}  // namespace dtrain::data
