#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "record_format.hpp"
#include "record_index.hpp"

namespace dtrain::data {

struct RecordFile::State {
  Path path;
  MappedFile file;
  std::vector<std::uint64_t> offsets;
  RecordBytes bytes() const { return {file.bytes(), path}; }
};

Path index_path(const Path& rec) { return Path(rec).replace_extension(".idx"); }

RecordFile::RecordFile(const Path& rec) : state_(std::make_unique<State>()) {
  state_->path = rec;
  state_->file = MappedFile(rec);
  if (state_->file.bytes().empty()) {
    throw DataError(fmt::format("{}: is empty", rec.string()), "prepare it again: dtrain data prepare --help");
  }
  const Path idx = index_path(rec);
  if (!std::filesystem::exists(idx)) {
    state_->offsets = scan_records(state_->bytes());
    return;
  }
  const MappedFile index(idx);
  state_->offsets = parse_index(text_of(index.bytes()), idx);
  check_index_fits(state_->offsets, state_->bytes(), idx);
}

RecordFile::~RecordFile() = default;

std::size_t RecordFile::size() const { return state_->offsets.size(); }

std::uint64_t RecordFile::offset(std::size_t position) const {
  DTRAIN_CHECK(position < size(), "there is no record at this position");
  return state_->offsets[position];
}

Record RecordFile::read(std::size_t position) const { return record_at(state_->bytes(), offset(position)); }

void RecordFile::read(std::size_t position, Record& into) const { record_at(state_->bytes(), offset(position), into); }

const Path& RecordFile::path() const { return state_->path; }

}  // namespace dtrain::data
