#include "archive.hpp"

#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>

#include "safe_names.hpp"
#include "zip_member.hpp"

namespace dtrain::data {
namespace {

bool is_tar(const Path& file) { return file.extension() == ".tar"; }

bool is_packed_tar(const Path& file) {
  return file.extension() == ".tgz" || (file.extension() == ".gz" && is_tar(file.stem()));
}

std::string_view file_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::string file_stamp(const Path& file) {
  std::error_code error;
  const std::uint64_t size = std::filesystem::file_size(file, error);
  const auto changed = std::filesystem::last_write_time(file, error).time_since_epoch().count();
  return error ? "?" : fmt::format("{} {}", size, changed);
}

bool is_archive(const Path& file) { return is_tar(file) || is_packed_tar(file) || file.extension() == ".zip"; }

Archives::Archives(const std::vector<Path>& files) {
  for (const Path& file : files) {
    SourceBytes bytes = map_source(file);
    if (is_packed_tar(file)) bytes = gunzip(bytes);
    opened_.push_back({bytes, file_stamp(file)});
    if (file.extension() != ".zip") {
      add_tar(bytes, 0, "");
      continue;
    }
    for (ArchiveMember& member : list_zip(bytes)) {
      member.archive = static_cast<std::uint32_t>(opened_.size() - 1);
      members_.push_back(std::move(member));
    }
  }
  index_names();
}

void Archives::add_tar(const SourceBytes& tar, std::uint64_t base, const std::string& prefix) {
  for_each_in_tar(tar, [&](const TarEntry& entry) {
    if (is_tar(entry.name) && prefix.empty()) {
      add_tar({fmt::format("{}({})", tar.name, entry.name), tar.bytes.subspan(entry.content, entry.size), tar.owner},
              base + entry.content, Path(entry.name).stem().string() + "/");
    } else {
      members_.push_back({.name = prefix + Path(entry.name).lexically_normal().string(),
                          .offset = base + entry.content,
                          .stored = entry.size,
                          .size = entry.size,
                          .archive = static_cast<std::uint32_t>(opened_.size() - 1)});
    }
    return true;
  });
}

void Archives::index_names() {
  by_file_name_.resize(members_.size());
  for (std::size_t i = 0; i < members_.size(); ++i) by_file_name_[i] = static_cast<std::uint32_t>(i);
  std::stable_sort(by_file_name_.begin(), by_file_name_.end(), [this](std::uint32_t a, std::uint32_t b) {
    return file_name(members_[a].name) < file_name(members_[b].name);
  });
}

SourceBytes Archives::open(std::size_t member) const {
  const ArchiveMember& found = members_[member];
  return whole_member(opened_[found.archive].bytes, found);
}

std::optional<std::size_t> Archives::find(std::string_view name) const {
  const std::string_view last = file_name(name);
  auto at = std::lower_bound(by_file_name_.begin(), by_file_name_.end(), last,
                             [this](std::uint32_t a, std::string_view b) { return file_name(members_[a].name) < b; });
  const std::string inside = fmt::format("/{}", name);
  std::optional<std::size_t> found, other, hidden;
  for (; at != by_file_name_.end() && file_name(members_[*at].name) == last; ++at) {
    const std::string& whole = members_[*at].name;
    if (whole == name) return *at;
    if (!whole.ends_with(inside)) continue;
    if (is_hidden_path(whole.substr(0, whole.size() - inside.size()))) {
      hidden = hidden.value_or(*at);
    } else if (!found) {
      found = *at;
    } else if (whole != members_[*found].name) {
      other = *at;
    }
  }
  if (other) {
    throw DataError(
        fmt::format("{}: holds {} and {}, and {} may be either", opened_[members_[*found].archive].bytes.name,
                    members_[*found].name, members_[*other].name, name),
        "name it with its folder inside the archive, or unpack the archive and name that folder");
  }
  return found ? found : hidden;
}

std::string Archives::stamp(std::size_t member) const {
  return fmt::format("{} {}", opened_[members_[member].archive].stamp, members_[member].offset);
}

}  // namespace dtrain::data
