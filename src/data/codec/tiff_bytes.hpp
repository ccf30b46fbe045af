// What TIFF does with the bytes of a strip or a tile.
#pragma once

#include <cstdint>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

// Exactly `size` bytes. Compression: 1 none, 5 LZW, 8 and 32946 deflate, 32773 PackBits. Throws DataError starting with
// "TIFF" for others and for damage.
std::vector<std::uint8_t> unpack_tiff(ByteView stored, std::uint64_t compression, std::uint64_t size);

// Undoes predictor 2: each sample of 8 or 16 bits is stored as its difference from the one before it in the row.
void add_up_rows(std::vector<std::uint8_t>& bytes, std::uint64_t row_bytes, std::uint64_t samples, std::uint64_t bits,
                 bool big_endian);

}  // namespace dtrain::data
