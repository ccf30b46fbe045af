#include "checksum.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>

#include <dtrain/base/base64.hpp>
#include <dtrain/base/error.hpp>
#include <dtrain/base/hash.hpp>
#include <dtrain/base/text.hpp>

#include "store_state.hpp"

namespace dtrain::net {
namespace {

constexpr int kPartsOfOneSize = 1000;
constexpr std::uint64_t kMostParts = 10'000;

std::string big_endian(std::uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 255);
  return bytes;
}

// `size` bytes as `count` parts of which `size_of` gives the sizes; nullopt: they make more parts or fewer.
std::optional<std::vector<std::uint64_t>> cut(std::uint64_t size, std::uint64_t count,
                                              const std::function<std::uint64_t(int number)>& size_of) {
  std::vector<std::uint64_t> sizes;
  while (size > 0 && sizes.size() < count) {
    sizes.push_back(std::min(size, size_of(static_cast<int>(sizes.size()) + 1)));
    size -= sizes.back();
  }
  if (size > 0 || sizes.size() < count) return std::nullopt;
  return sizes;
}

}  // namespace

std::string checksum_text(ByteView content) { return base64(big_endian(crc32c(content))); }

std::string checksum_of_parts(ByteView content, const std::vector<std::uint64_t>& parts) {
  std::vector<std::string> checksums;
  for (const std::uint64_t size : parts) {
    checksums.push_back(checksum_text(content.first(size)));
    content = content.subspan(size);
  }
  return checksum_of_checksums(checksums);
}

std::string checksum_of_checksums(const std::vector<std::string>& parts) {
  std::string sums;
  for (const std::string& part : parts) sums += from_base64(part);
  return fmt::format("{}-{}", checksum_text(bytes_of(sums)), parts.size());
}

std::uint64_t own_part_size(int number, std::uint64_t first) { return first << ((number - 1) / kPartsOfOneSize); }

std::optional<std::vector<std::uint64_t>> sizes_of_parts(std::uint64_t size, std::uint64_t first, std::uint64_t count) {
  if (first == 0 || count == 0 || count > kMostParts) return std::nullopt;
  const auto same_size = [&](int) { return first; };
  if (auto sizes = cut(size, count, same_size)) return sizes;
  return cut(size, count, [&](int number) { return own_part_size(number, first); });
}

ContentMatch ObjectStore::compare(const std::string& url, const ObjectState& pinned, ByteView content) {
  const auto match = [&](const std::string& checksum) {
    return checksum == pinned.checksum ? ContentMatch::same : ContentMatch::differs;
  };
  if (content.size() != pinned.size) return ContentMatch::differs;
  if (pinned.checksum.empty()) return ContentMatch::unknown;
  const std::size_t dash = pinned.checksum.find('-');
  if (dash == pinned.checksum.npos) return match(checksum_text(content));
  // The checksum does not hold the parts' sizes. A server that does not know partNumber gives the size of the whole.
  const AwsAnswer first = state_->call(url, {.method = "HEAD", .query = {{"partNumber", "1"}}});
  const auto first_size = parse_integer(first.header("content-length"));
  const auto count = parse_integer(std::string_view(pinned.checksum).substr(dash + 1));
  if (!first_size || *first_size <= 0 || !count || *count <= 0) return ContentMatch::unknown;
  const auto parts =
      sizes_of_parts(content.size(), static_cast<std::uint64_t>(*first_size), static_cast<std::uint64_t>(*count));
  return parts ? match(checksum_of_parts(content, *parts)) : ContentMatch::unknown;
}

}  // namespace dtrain::net
