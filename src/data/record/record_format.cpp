#include "record_format.hpp"

#include <fmt/format.h>

#include <array>

#include <dtrain/data/objects.hpp>

#include "codec/bytes.hpp"
#include "objects/objects_block.hpp"

namespace dtrain::data {
namespace {

[[noreturn]] void fail(const Path& path, std::uint64_t offset, const std::string& reason, const char* hint) {
  throw RecordError(path, offset, reason, hint);
}

struct Part {
  PartKind kind;
  std::uint64_t begin, length;  // of its content
  std::uint64_t end;            // where the next part begins
};

// A file of `size` bytes whose heads of parts come from head_at(offset).
template <typename HeadAt>
struct PartFile {
  const Path& path;
  std::uint64_t first, size;  // offsets from `first` on can be read
  HeadAt head_at;
};

template <typename HeadAt>
Part part_at(const PartFile<HeadAt>& file, std::uint64_t offset) {
  if (offset < file.first || offset > file.size || file.size - offset < kPartHeadSize) {
    fail(file.path, offset, fmt::format("a record should begin here, but the file ends at byte {}", file.size),
         "the file was cut short: copy or prepare it again");
  }
  const auto head = file.head_at(offset);
  const auto magic = load<std::uint32_t>(head, 0);
  if (magic != kRecordMagic) {
    fail(file.path, offset, fmt::format("no record begins here (magic {:#010x}, not {:#010x})", magic, kRecordMagic),
         "the file is damaged or not a .rec file");
  }
  const auto word = load<std::uint32_t>(head, 4);
  const std::uint32_t length = word & kMaxPartLength;
  const std::uint64_t begin = offset + kPartHeadSize;
  if (word >> 29 > static_cast<std::uint32_t>(PartKind::last)) {
    fail(file.path, offset, fmt::format("a part of unknown kind {}", word >> 29), "the file is damaged");
  }
  if (padded(length) > file.size - begin) {
    fail(file.path, offset,
         fmt::format("the record has {} bytes, but the file ends after {}", length, file.size - begin),
         "the file was cut short or is damaged: copy or prepare it again");
  }
  return {static_cast<PartKind>(word >> 29), begin, length, begin + padded(length)};
}

// Calls use(part) for every part of one record and returns the byte after it.
template <typename HeadAt, typename Use>
std::uint64_t for_each_part(const PartFile<HeadAt>& file, std::uint64_t offset, const Use& use) {
  Part part = part_at(file, offset);
  if (part.kind != PartKind::whole && part.kind != PartKind::first) {
    fail(file.path, offset, "a later part of a record where its first should be", "the file or its .idx is damaged");
  }
  use(part);
  bool more = part.kind == PartKind::first;
  while (more) {
    const std::uint64_t next = part.end;
    part = part_at(file, next);
    if (part.kind != PartKind::middle && part.kind != PartKind::last) {
      fail(file.path, next, fmt::format("the record that began at byte {} has no last part", offset),
           "the file is damaged");
    }
    use(part);
    more = part.kind == PartKind::middle;
  }
  return part.end;
}

auto parts_of(const RecordBytes& file) {
  const auto head_at = [&file](std::uint64_t offset) { return file.bytes.subspan(offset - file.base, kPartHeadSize); };
  return PartFile<decltype(head_at)>{file.path, file.base, file.end(), head_at};
}

ByteView content_of(const RecordBytes& file, const Part& part) {
  return file.bytes.subspan(part.begin - file.base, part.length);
}

// The parts with the magic between them that the writer left out.
std::shared_ptr<const std::string> join_parts(const RecordBytes& file, std::uint64_t offset) {
  auto joined = std::make_shared<std::string>();
  for_each_part(parts_of(file), offset, [&](const Part& part) {
    if (part.kind == PartKind::middle || part.kind == PartKind::last) append(*joined, kRecordMagic);
    *joined += text_of(content_of(file, part));
  });
  return joined;
}

// Takes the objects off the end of record.payload, where labels of boxes have a third number in front of them that
// counts their bytes.
void split_objects(Record& record) {
  if (!has_boxes(record.labels) || record.labels[0] != 3) return;
  const float count = record.labels[2];
  if (!(count > 0 && count < static_cast<float>(record.payload.size()))) return;
  const std::size_t begin = record.payload.size() - static_cast<std::size_t>(count);
  if (!begins_objects(record.payload.subspan(begin))) return;
  record.objects = record.payload.subspan(begin);
  record.payload = record.payload.first(begin);
}

// Takes the image header off the front of record.payload.
void split_header(const RecordBytes& file, std::uint64_t offset, Record& record) {
  const ByteView content = record.payload;
  if (content.size() < kImageHeaderSize) {
    fail(file.path, offset, fmt::format("{} bytes are too few for a record's header", content.size()),
         "the file holds something other than labelled images, or is damaged");
  }
  const auto label_count = load<std::uint32_t>(content, 0);
  record.id = load<std::uint64_t>(content, 8);
  record.objects = {};
  record.payload = content.subspan(kImageHeaderSize);
  if (label_count == 0) {
    record.labels.assign(1, load<float>(content, 4));
    return;
  }
  const std::uint64_t label_bytes = std::uint64_t{label_count} * sizeof(float);
  if (label_bytes > record.payload.size()) {
    fail(file.path, offset, fmt::format("the header counts {} labels, more than the record holds", label_count),
         "the file is damaged");
  }
  record.labels.resize(label_count);
  std::memcpy(record.labels.data(), record.payload.data(), label_bytes);
  record.payload = record.payload.subspan(label_bytes);
  split_objects(record);
}

}  // namespace

RecordError::RecordError(const Path& path, std::uint64_t offset, const std::string& reason, const std::string& hint)
    : DataError(fmt::format("{}: byte {}: {}", shown_path(path).string(), offset, reason), hint),
      offset_(offset),
      reason_(reason) {}

std::uint64_t record_end(const RecordBytes& file, std::uint64_t offset) {
  return for_each_part(parts_of(file), offset, [](const Part&) {});
}

std::uint64_t record_end(const Path& path, std::uint64_t size, std::uint64_t offset, const ReadBytes& read) {
  std::array<std::byte, kPartHeadSize> head{};
  const auto head_at = [&](std::uint64_t at) {
    read(at, head);
    return ByteView(head);
  };
  return for_each_part(PartFile<decltype(head_at)>{path, 0, size, head_at}, offset, [&](const Part& part) {
    if (part.end - offset <= kLargestRecord) return;
    fail(path, offset, fmt::format("the record has more than the container's {} bytes", kLargestRecord),
         "the file is damaged");
  });
}

std::uint64_t next_record_start(const RecordBytes& file, std::uint64_t offset) {
  const std::uint64_t size = file.bytes.size();
  for (std::uint64_t at = padded(offset); at + kPartHeadSize <= size; at += 4) {
    const bool starts = load<std::uint32_t>(file.bytes, at) == kRecordMagic;
    const auto kind = static_cast<PartKind>(load<std::uint32_t>(file.bytes, at + 4) >> 29);
    if (starts && (kind == PartKind::whole || kind == PartKind::first)) return at;
  }
  return size;
}

Record record_at(const RecordBytes& file, std::uint64_t offset) {
  Record record;
  record_at(file, offset, record);
  return record;
}

void record_at(const RecordBytes& file, std::uint64_t offset, Record& into) {
  const Part part = part_at(parts_of(file), offset);
  if (part.kind == PartKind::whole) {
    into.owner = nullptr;
    into.payload = content_of(file, part);
  } else {
    const auto joined = join_parts(file, offset);
    into.payload = bytes_of(*joined);
    into.owner = joined;
  }
  split_header(file, offset, into);
}

}  // namespace dtrain::data
