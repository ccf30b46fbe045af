// Records in MXNet's RecordIO container (.rec, with an .idx of "id<TAB>offset" lines). man/dtrain-records.5 says the
// bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>

namespace dtrain::data {

struct Record {
  std::uint64_t id = 0;
  std::vector<float> labels;  // one for classification; more when the header's flag says so
  ByteView payload;           // JPEG, PNG or dtrain pixels; borrowed from the file
};

// Read-only view of one .rec file. Safe for concurrent use. Without .idx (or with one that does not fit) the frames are
// scanned once. Errors are DataError with file and byte offset.
class RecordFile {
 public:
  explicit RecordFile(const Path& rec);
  ~RecordFile();
  std::size_t size() const;  // records
  std::uint64_t offset(std::size_t position) const;
  Record read(std::size_t position) const;  // checks the frame; a damaged one throws
  const Path& path() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Writes PREFIX.rec and PREFIX.idx; nothing appears under those names before finish().
class RecordWriter {
 public:
  explicit RecordWriter(const Path& rec);
  ~RecordWriter();
  void add(std::uint64_t id, float label, ByteView payload);
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct VerifyProblem {
  std::uint64_t offset = 0;
  std::size_t position = 0;
  std::string what;
};
struct VerifyReport {
  std::size_t records = 0;
  std::vector<std::size_t> class_counts;  // by label
  std::vector<VerifyProblem> problems;    // first `limit`, by offset
};
// Frame, header, index entry and decodability of every record.
VerifyReport verify_records(const Path& rec, std::size_t limit = 16);

}  // namespace dtrain::data
