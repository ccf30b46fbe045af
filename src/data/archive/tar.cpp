#include <fmt/format.h>

#include <cstring>

#include <dtrain/base/error.hpp>
#include <dtrain/data/copy.hpp>

#include "archive.hpp"
#include "tar_stream.hpp"

namespace dtrain::data {

bool for_each_in_tar(const SourceBytes& tar, const std::function<bool(const TarEntry&)>& visit) {
  const auto read = [&](std::uint64_t offset, std::span<std::byte> into) {
    std::memcpy(into.data(), tar.bytes.data() + offset, into.size());
  };
  for (std::uint64_t at = 0;;) {
    const auto entry = next_tar_entry(tar.name, tar.bytes.size(), at, read);
    if (!entry) return at < tar.bytes.size();
    if (!entry->folder && !visit(*entry)) return true;
    at = entry->end;
  }
}

bool lacks_end_mark(const Path& file) {
  return file.extension() == ".tar" && std::filesystem::is_regular_file(file) &&
         !for_each_in_tar(map_source(file), [](const TarEntry&) { return true; });
}

SourceBytes file_in_tar(const SourceBytes& tar, std::string_view name) {
  std::optional<SourceBytes> found;
  for_each_in_tar(tar, [&](const TarEntry& entry) {
    if (Path(entry.name).filename() != name) return true;
    found = {fmt::format("{}({})", tar.name, entry.name), tar.bytes.subspan(entry.content, entry.size), tar.owner};
    return false;
  });
  if (!found) throw DataError(fmt::format("{}: holds no {}", tar.name, name), "is it the right archive?");
  return *found;
}

}  // namespace dtrain::data
