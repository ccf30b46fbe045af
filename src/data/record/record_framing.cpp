#include <fmt/format.h>

#include "codec/bytes.hpp"
#include "record_format.hpp"

namespace dtrain::data {
namespace {

std::string header_of(std::uint64_t id, std::span<const float> labels) {
  const bool single = labels.size() == 1;
  std::string header;
  append(header, single ? std::uint32_t{0} : static_cast<std::uint32_t>(labels.size()));
  append(header, single ? labels[0] : 0.0f);
  append(header, id);
  append(header, std::uint64_t{0});
  if (!single) header += text_of(std::as_bytes(labels));
  return header;
}

void append_part(std::string& out, PartKind kind, std::string_view content) {
  append(out, kRecordMagic);
  append(out, static_cast<std::uint32_t>(kind) << 29 | static_cast<std::uint32_t>(content.size()));
  out += content;
  out.append(padded(content.size()) - content.size(), '\0');
}

// Where content holds the magic at a multiple of 4, at or after `from`; npos if nowhere.
std::size_t find_magic(std::string_view content, std::size_t from) {
  for (std::size_t at = from; at + 4 <= content.size(); at += 4) {
    if (load<std::uint32_t>(bytes_of(content), at) == kRecordMagic) return at;
  }
  return std::string_view::npos;
}

}  // namespace

// A reader that looks for the magic after a jump must only find true starts, so content is cut around every magic in
// it.
void append_record(std::string& out, std::uint64_t id, std::span<const float> labels, ByteView payload) {
  DTRAIN_CHECK(!labels.empty(), "a record has a label");
  std::string content = header_of(id, labels);
  if (content.size() + payload.size() > kMaxPartLength) {
    throw DataError(fmt::format("record {} has {} bytes, more than the container's {}", id,
                                content.size() + payload.size(), kMaxPartLength));
  }
  content += text_of(payload);
  out.reserve(out.size() + content.size() + 2 * kPartHeadSize);
  const std::string_view rest = content;
  std::size_t begin = 0, cut = find_magic(rest, 0);
  if (cut == rest.npos) return append_part(out, PartKind::whole, rest);
  while (cut != rest.npos) {
    append_part(out, begin == 0 ? PartKind::first : PartKind::middle, rest.substr(begin, cut - begin));
    begin = cut + 4;
    cut = find_magic(rest, begin);
  }
  append_part(out, PartKind::last, rest.substr(begin));
}

}  // namespace dtrain::data
