#include "checksum.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>

#include "store_state.hpp"

namespace dtrain::net {
namespace {

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

}  // namespace

std::string checksum_text(ByteView content) { return base64(big_endian(crc32c(content))); }

std::string checksum_of_parts(ByteView content, std::uint64_t part_size) {
  std::vector<std::string> parts;
  for (std::uint64_t at = 0; at < content.size(); at += part_size) {
    parts.push_back(checksum_text(content.subspan(at, std::min<std::uint64_t>(part_size, content.size() - at))));
  }
  return checksum_of_checksums(parts);
}

std::string checksum_of_checksums(const std::vector<std::string>& parts) {
  std::string sums;
  for (const std::string& part : parts) sums += from_base64(part);
  return fmt::format("{}-{}", checksum_text(bytes_of(sums)), parts.size());
}

bool ObjectStore::checks(const std::string& url, const ObjectState& pinned, ByteView content) {
  if (content.size() != pinned.size) return false;
  if (pinned.checksum.empty()) return true;
  const std::size_t dash = pinned.checksum.find('-');
  if (dash == pinned.checksum.npos) return pinned.checksum == checksum_text(content);
  // The checksum does not hold the parts' sizes: all parts but the last have the size of the first.
  const AwsAnswer first = state_->call(url, {.method = "HEAD", .query = {{"partNumber", "1"}}});
  const auto part_size = parse_integer(first.header("content-length"));
  const auto parts = parse_integer(std::string_view(pinned.checksum).substr(dash + 1));
  if (!part_size || *part_size <= 0 || !parts) return true;
  const auto size = static_cast<std::uint64_t>(*part_size);
  if ((content.size() + size - 1) / size != static_cast<std::uint64_t>(*parts)) return true;  // of unequal sizes
  return pinned.checksum == checksum_of_parts(content, size);
}

}  // namespace dtrain::net
