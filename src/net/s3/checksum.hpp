// S3's checksums: base64 of a big-endian CRC-32C; of an object in parts, that of the parts' checksums, and their count.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::net {

std::string checksum_text(ByteView content);
// The checksum of an object in parts of these sizes.
std::string checksum_of_parts(ByteView content, const std::vector<std::uint64_t>& parts);
// The same, from the parts' own checksums.
std::string checksum_of_checksums(const std::vector<std::string>& parts);

// The size of part `number`, from 1, of an own upload, whose first part has `first` bytes. It doubles after every 1,000
// parts, so that the 10,000 parts that S3 allows hold its largest object.
std::uint64_t own_part_size(int number, std::uint64_t first);
// The sizes of the `count` parts of an object of `size` bytes: all have the size of the first, or those of an own
// upload, and the last may be shorter. nullopt: neither makes so many parts.
std::optional<std::vector<std::uint64_t>> sizes_of_parts(std::uint64_t size, std::uint64_t first, std::uint64_t count);

}  // namespace dtrain::net
