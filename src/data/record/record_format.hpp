// The bytes of a .rec file (dmlc RecordIO with MXNet's image header), man/dtrain-records.5. All numbers are
// little-endian.
//
//   part   = magic u32 | word u32 (kind in the upper 3 bits, length in the lower 29) | length bytes | zeros to a
//   multiple of 4 record = one `whole` part, or first, middle..., last: the payload was cut where it held the magic at
//   a multiple of 4,
//            and that magic is left out
//   header = flag u32 | label f32 | id u64 | id2 u64 | flag float labels, which replace `label` when flag > 0
//   behind it the picture, and behind that the objects it shows where labels of boxes count their bytes
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>

#include <dtrain/base/error.hpp>
#include <dtrain/base/files.hpp>
#include <dtrain/data/record.hpp>

namespace dtrain::data {

inline constexpr std::uint32_t kMaxPartLength = (1u << 29) - 1;
inline constexpr std::size_t kPartHeadSize = 8;
// With its frame: where every four bytes are the magic, each pair is replaced by the head of a part.
inline constexpr std::uint64_t kLargestRecord = 2 * (std::uint64_t{kMaxPartLength} + kPartHeadSize);
inline constexpr std::size_t kImageHeaderSize = 24;

enum class PartKind : std::uint32_t { whole = 0, first = 1, middle = 2, last = 3 };

inline constexpr std::uint64_t padded(std::uint64_t length) { return (length + 3) / 4 * 4; }

// A damaged frame or header: what() names file and byte, reason() only what is wrong there.
class RecordError : public DataError {
 public:
  RecordError(const Path& path, std::uint64_t offset, const std::string& reason, const std::string& hint);
  std::uint64_t offset() const { return offset_; }
  const std::string& reason() const { return reason_; }

 private:
  std::uint64_t offset_;
  std::string reason_;
};

// A file of records as bytes, or a part of it that begins at byte `base`; the path is only for messages. Offsets are
// always those of the file.
struct RecordBytes {
  ByteView bytes;
  const Path& path;
  std::uint64_t base = 0;
  std::uint64_t end() const { return base + bytes.size(); }
};

// Adds one framed record to `out`. Throws DataError when the container cannot hold so large a record.
void append_record(std::string& out, std::uint64_t id, std::span<const float> labels, ByteView payload);

// The byte after the record that begins at `offset`. Throws RecordError when no whole record stands there.
std::uint64_t record_end(const RecordBytes& file, std::uint64_t offset);
// The same of a file of `size` bytes, which may be far away: reads the heads of the record's parts alone, so that
// neither the size nor a head makes anything be allocated. Throws RecordError also for a record of more bytes than
// append_record() makes.
using ReadBytes = std::function<void(std::uint64_t offset, std::span<std::byte> into)>;
std::uint64_t record_end(const Path& path, std::uint64_t size, std::uint64_t offset, const ReadBytes& read);
// The record that begins at `offset`, with its header taken apart.
Record record_at(const RecordBytes& file, std::uint64_t offset);
void record_at(const RecordBytes& file, std::uint64_t offset, Record& into);  // reusing its memory
// The next place at or after `offset` where a record may begin; the file's size if there is none.
std::uint64_t next_record_start(const RecordBytes& file, std::uint64_t offset);

}  // namespace dtrain::data
