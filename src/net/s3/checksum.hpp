// S3's checksums: base64 of a big-endian CRC-32C; of an object in parts, that of the parts' checksums, and their count.
#pragma once

#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

std::string checksum_text(ByteView content);
// The checksum of an object that was sent in parts of part_size; the last may be shorter.
std::string checksum_of_parts(ByteView content, std::uint64_t part_size);

// The checksum of an object in parts of any size, from their own checksums.
std::string checksum_of_checksums(const std::vector<std::string>& parts);

}  // namespace dtrain::net
