#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "record_format.hpp"
#include "record_index.hpp"

namespace dtrain::data {

struct RecordWriter::State {
  explicit State(const Path& path) : rec_path(path), rec(path), idx(index_path(path)) {}
  Path rec_path;
  AtomicFile rec, idx;
  std::string framed;  // the record that is being added
};

RecordWriter::RecordWriter(const Path& rec) {
  if (rec.extension() != ".rec") {
    throw UsageError(fmt::format("{}: a record file's name ends in .rec", rec.string()));
  }
  state_ = std::make_unique<State>(rec);
}

RecordWriter::~RecordWriter() = default;

void RecordWriter::add(std::uint64_t id, float label, ByteView payload) { add(id, std::span(&label, 1), payload); }

void RecordWriter::add(std::uint64_t id, std::span<const float> labels, ByteView payload) {
  state_->framed.clear();
  try {
    append_record(state_->framed, id, labels, payload);
  } catch (const DataError& error) {
    throw DataError(fmt::format("{}: {}", state_->rec_path.string(), error.what()), error.hint());
  }
  state_->idx.write(index_line(id, state_->rec.size()));
  state_->rec.write(state_->framed);
}

void RecordWriter::finish() {
  // An old index beside the new records would be wrong, none is not.
  std::error_code ignored;
  std::filesystem::remove(index_path(state_->rec_path), ignored);
  state_->rec.commit();
  state_->idx.commit();
}

}  // namespace dtrain::data
