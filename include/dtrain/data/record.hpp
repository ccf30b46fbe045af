// Records in MXNet's RecordIO container (.rec, with an .idx of "id<TAB>offset" lines). man/dtrain-records.5 says the
// bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <dtrain/base/files.hpp>
#include <dtrain/data/remote.hpp>

namespace dtrain::data {

inline constexpr std::uint32_t kRecordMagic = 0xced7230a;  // with which each part of a record begins

struct Record {
  std::uint64_t id = 0;
  std::vector<float> labels;          // one for classification; more when the header's flag says so
  ByteView payload;                   // JPEG, PNG or dtrain pixels; borrowed from the file, or from `owner`
  ByteView objects = {};              // what stands behind the payload where the labels say so: data/objects.hpp
  std::shared_ptr<const void> owner;  // of the payload of a record that came in parts or from far away
};

// Read-only view of one .rec file. Safe for concurrent use. Without .idx the frames are scanned once; an .idx that does
// not fit its .rec is a DataError. A remote one (s3://, https://) needs its .idx. Positions follow the .idx. Errors are
// DataError with file and byte offset.
class RecordFile {
 public:
  explicit RecordFile(const Path& rec, const RemoteOptions& remote = {});
  RecordFile(RecordFile&&) noexcept;
  ~RecordFile();
  std::size_t size() const;  // records, at least one
  std::uint64_t offset(std::size_t position) const;
  Record read(std::size_t position) const;              // checks the frame; a damaged one throws
  void read(std::size_t position, Record& into) const;  // the same, reusing the memory of `into`
  const Path& path() const;
  bool is_remote() const;
  std::uint64_t bytes() const;  // of the whole .rec
  // Fetches a remote record into the cache, every block once a round. Rounds are counted from 1.
  void fetch_ahead(std::size_t position, std::uint32_t round) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The index that belongs to a .rec file: the same name with .idx as its ending, and with the query of a web address.
Path index_path(const Path& rec);

// The files that a person means, in the order in which they make up a set: names with commas between them, each a file,
// a pattern (* ? [...]) or a prefix: PREFIX.rec, or PREFIX_0.rec to PREFIX_<N-1>.rec without a gap; or one name that
// holds commas itself. Blanks beside a comma do not count unless a file has them. Numbers in names count as numbers:
// p_2.rec comes before p_10.rec. Behind s3:// as in a folder; `store` null: one is made where that is needed. Throws
// DataError that names what is not there.
std::vector<Path> find_records(const std::string& spec, const std::shared_ptr<net::ObjectStore>& store = {});

// Several record files as one: positions go on from file to file. Safe for concurrent use; errors as of RecordFile.
class RecordSet {
 public:
  explicit RecordSet(const std::vector<Path>& files, RemoteOptions remote = {});
  std::size_t size() const { return ends_.back(); }
  void read(std::size_t position, Record& into) const;
  bool is_remote() const;                                             // any of its files
  void fetch_ahead(std::size_t position, std::uint32_t round) const;  // as of RecordFile
  std::string name() const;                                           // for messages
  std::string place(std::size_t position) const;  // "FILE: record 3 at byte 120", with the position in that file
  const std::vector<RecordFile>& files() const { return files_; }

 private:
  struct Located {
    const RecordFile* file;
    std::size_t inside;
  };
  Located locate(std::size_t position) const;

  std::vector<RecordFile> files_;
  std::vector<std::size_t> ends_;  // of each file's positions
};

// By what two sets of equally many records are known to be others, or in another order: SHA-256 of the records' sizes
// by position, and of labels and first bytes of 32 records, which differ where all sizes are equal. The names and the
// number of the files do not count, so that all workers have the same of the same set, on their disks or far away.
struct RecordOrder {
  std::string sizes;     // lower-case hex; empty: nothing is known
  std::string contents;  // the same; empty: nothing is known, as of remote files and broken records
  friend bool operator==(const RecordOrder&, const RecordOrder&) = default;
};
// That of the first `count` records. Sizes come from the index: no server is asked.
RecordOrder order_of_records(const RecordSet& set, std::size_t count);

// The picture of each position, as the .lst files beside the record files name it; empty where there is none, where it
// does not fit its records or cannot be read, and behind a web address. `store` null: one is made where that is needed.
std::vector<std::string> listed_files(const RecordSet& set, const std::shared_ptr<net::ObjectStore>& store = {});

// Writes PREFIX.rec and PREFIX.idx; nothing appears under those names before finish(). A crash inside finish() can
// leave the .rec alone, which is complete and readable without its .idx.
class RecordWriter {
 public:
  explicit RecordWriter(const Path& rec);
  ~RecordWriter();
  void add(std::uint64_t id, float label, ByteView payload);
  void add(std::uint64_t id, std::span<const float> labels,
           ByteView payload);  // several labels: the header's flag counts them
  void finish();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

struct VerifyProblem {
  std::uint64_t offset = 0;  // byte in the .rec where the damaged record begins
  std::size_t position = 0;  // of the record in the file
  std::string what;
  bool is_damage = true;  // false: the record is as it was made, of a label or a box that no training takes
};
struct VerifyReport {
  std::size_t records = 0;                // whole records that were found
  std::vector<std::size_t> class_counts;  // of the good records, by label; those with several labels are not counted
  std::size_t several_labels = 0;         // good records with several labels that are no boxes
  std::size_t objects = 0;                // with boxes, in good records
  std::size_t problem_count = 0;          // 0: the file is good
  std::size_t index_problems = 0;         // those of problem_count in which the .idx does not match the records
  std::vector<VerifyProblem> problems;    // the first `limit` of them by offset
  std::optional<VerifyProblem> damage;    // the first problem that is damage, even if `problems` leaves it out
};
// Checks frame, header, index entry, decodability, the only label and the geometry of boxes and masks of every record,
// on all processors. After a damaged frame it goes on at the next one. Damage is reported, not thrown; throws Error
// only when the file cannot be opened.
VerifyReport verify_records(const Path& rec, std::size_t limit = 16);

}  // namespace dtrain::data
