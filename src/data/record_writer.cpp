#include <fmt/format.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/record.hpp>

#include "bytes.hpp"
#include "record_format.hpp"

namespace dtrain::data {
namespace {

void write_part(AtomicFile& out, PartKind kind, ByteView content) {
  const std::uint32_t head[2] = {kRecordMagic,
                                 static_cast<std::uint32_t>(kind) << 29 | static_cast<std::uint32_t>(content.size())};
  static constexpr std::byte zeros[4]{};
  out.write(std::as_bytes(std::span(head)));
  out.write(content);
  out.write(ByteView(zeros, padded(content.size()) - content.size()));
}

// Where content holds the magic at a multiple of 4, at or after `from`; npos if nowhere.
std::size_t find_magic(ByteView content, std::size_t from) {
  for (std::size_t at = from; at + 4 <= content.size(); at += 4) {
    if (load<std::uint32_t>(content, at) == kRecordMagic) return at;
  }
  return std::string_view::npos;
}

// A reader that looks for the magic after a jump must only find true starts, so content is cut around every magic in
// it.
void write_record(AtomicFile& out, ByteView content) {
  std::size_t begin = 0;
  std::size_t cut = find_magic(content, 0);
  if (cut == std::string_view::npos) return write_part(out, PartKind::whole, content);
  while (cut != std::string_view::npos) {
    write_part(out, begin == 0 ? PartKind::first : PartKind::middle, content.subspan(begin, cut - begin));
    begin = cut + 4;
    cut = find_magic(content, begin);
  }
  write_part(out, PartKind::last, content.subspan(begin));
}

}  // namespace

struct RecordWriter::State {
  explicit State(const Path& path) : rec_path(path), rec(path), idx(index_path(path)) {}
  Path rec_path;
  AtomicFile rec, idx;
  std::string content;  // of the record that is being added
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
  DTRAIN_CHECK(!labels.empty(), "a record has a label");
  const bool single = labels.size() == 1;
  std::string& content = state_->content;
  content.clear();
  append(content, single ? std::uint32_t{0} : static_cast<std::uint32_t>(labels.size()));
  append(content, single ? labels[0] : 0.0f);
  append(content, id);
  append(content, std::uint64_t{0});
  if (!single) content += text_of(std::as_bytes(labels));
  content += text_of(payload);
  if (content.size() > kMaxPartLength) {
    throw DataError(fmt::format("{}: record {} has {} bytes, more than the container's {}", state_->rec_path.string(),
                                id, content.size(), kMaxPartLength));
  }
  state_->idx.write(fmt::format("{}\t{}\n", id, state_->rec.size()));
  write_record(state_->rec, bytes_of(content));
}

void RecordWriter::finish() {
  // An old index beside the new records would be wrong, none is not.
  std::error_code ignored;
  std::filesystem::remove(index_path(state_->rec_path), ignored);
  state_->rec.commit();
  state_->idx.commit();
}

}  // namespace dtrain::data
