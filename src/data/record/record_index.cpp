#include "record_index.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <optional>

#include <dtrain/base/error.hpp>

namespace dtrain::data {
namespace {

constexpr const char* kRebuildHint =
    "copy or prepare both files again; if only the .idx is wrong, delete it and the .rec is scanned instead";

std::optional<std::uint64_t> offset_of_line(std::string_view line) {
  const std::size_t tab = line.find('\t');
  if (tab == 0 || tab == line.npos) return std::nullopt;
  const char* const end = line.data() + line.size();
  std::uint64_t offset = 0;
  const auto [stop, error] = std::from_chars(line.data() + tab + 1, end, offset);
  if (error != std::errc() || stop != end) return std::nullopt;
  return offset;
}

}  // namespace

std::string index_line(std::uint64_t id, std::uint64_t offset) { return fmt::format("{}\t{}\n", id, offset); }

std::vector<std::uint64_t> parse_index(std::string_view text, const Path& idx) {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(text.size() / 8);
  std::size_t line_number = 0;
  while (!text.empty()) {
    ++line_number;
    const std::size_t line_end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, line_end);
    text.remove_prefix(std::min(line_end + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) continue;
    const std::optional<std::uint64_t> offset = offset_of_line(line);
    if (!offset) {
      throw DataError(fmt::format("{}: line {}: not \"id<TAB>offset\"", shown_path(idx).string(), line_number),
                      kRebuildHint);
    }
    offsets.push_back(*offset);
  }
  return offsets;
}

void check_index_fits(const std::vector<std::uint64_t>& offsets, const Path& idx, const Path& rec, std::uint64_t size,
                      const std::function<std::uint64_t(std::uint64_t)>& end_of) {
  const auto refuse = [&](const std::string& why) {
    throw DataError(
        fmt::format("{}: does not fit {}: {}", shown_path(idx).string(), shown_path(rec).filename().string(), why),
        kRebuildHint);
  };
  if (offsets.empty()) refuse("it lists no records");
  std::uint64_t lowest = offsets.front(), highest = offsets.front();
  for (const std::uint64_t offset : offsets) {
    if (offset % 4 != 0) refuse(fmt::format("no record can begin at byte {}, which is no multiple of 4", offset));
    lowest = std::min(lowest, offset);
    highest = std::max(highest, offset);
  }
  if (lowest != 0) refuse(fmt::format("its lowest offset is {}, not 0", lowest));
  if (highest >= size) {
    refuse(fmt::format("it lists a record at byte {}, but the file has {} bytes", highest, size));
  }
  const std::uint64_t end = end_of(highest);
  if (end != size) refuse(fmt::format("its last record ends at byte {}, but the file has {} bytes", end, size));
}

std::vector<std::uint64_t> scan_records(const RecordBytes& file) {
  std::vector<std::uint64_t> offsets;
  for (std::uint64_t offset = 0; offset < file.bytes.size(); offset = record_end(file, offset))
    offsets.push_back(offset);
  return offsets;
}

}  // namespace dtrain::data
