#include <fmt/format.h>

#include <algorithm>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::data {

RecordSet::RecordSet(const std::vector<Path>& files, RemoteOptions remote) {
  DTRAIN_CHECK(!files.empty(), "a set has a file");
  files_.reserve(files.size());
  if (!remote.store && std::any_of(files.begin(), files.end(), data::is_remote)) {
    remote.store = std::make_shared<net::ObjectStore>();
  }
  for (const Path& file : files) {
    files_.emplace_back(file, remote);
    ends_.push_back((ends_.empty() ? 0 : ends_.back()) + files_.back().size());
  }
}

void RecordSet::read(std::size_t position, Record& into) const {
  const auto [file, inside] = locate(position);
  file->read(inside, into);
}

bool RecordSet::is_remote() const {
  return std::any_of(files_.begin(), files_.end(), [](const RecordFile& file) { return file.is_remote(); });
}

void RecordSet::fetch_ahead(std::size_t position, std::uint32_t round) const {
  const auto [file, inside] = locate(position);
  file->fetch_ahead(inside, round);
}

std::string RecordSet::place(std::size_t position) const {
  const auto [file, inside] = locate(position);
  return fmt::format("{}: record {} at byte {}", file->path().string(), inside, file->offset(inside));
}

std::string RecordSet::name() const {
  const std::string first = files_.front().path().string();
  return files_.size() == 1 ? first : fmt::format("{} and {} more", first, files_.size() - 1);
}

RecordSet::Located RecordSet::locate(std::size_t position) const {
  DTRAIN_CHECK(position < size(), "there is no record at this position");
  const auto end = std::upper_bound(ends_.begin(), ends_.end(), position);
  const auto number = static_cast<std::size_t>(end - ends_.begin());
  return {&files_[number], position - (number == 0 ? 0 : ends_[number - 1])};
}

}  // namespace dtrain::data
