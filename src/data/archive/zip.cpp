// Zip archives (PKWARE's APPNOTE.TXT 6.3): the central directory at the end says where every file is.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/text.hpp>
#include <dtrain/data/zip.hpp>

#include "archive.hpp"
#include "codec/bytes.hpp"
#include "zip_member.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint32_t kLocalHead = 0x04034b50, kCentralHead = 0x02014b50, kEnd = 0x06054b50, kEnd64 = 0x06064b50,
                        kEnd64Locator = 0x07064b50;
constexpr std::uint64_t kEndSize = 22, kLongestComment = 65535, kLocatorSize = 20, kEnd64Size = 56;
constexpr std::uint64_t kLocalSize = 30, kCentralSize = 46;
constexpr std::uint16_t kZip64Extra = 1, kEncrypted = 1;
constexpr std::uint16_t kStored = 0, kDeflated = 8;
constexpr const char* kGetZipAgain = "copy or download it again";
constexpr const char* kZipMethods =
    "dtrain reads stored and deflated files without a password: unpack it with another program, or make it again so";
constexpr std::uint8_t kMadeOnFat = 0, kMadeOnNtfs = 10;
// Deflated numbers of networks have at most so many times their size.
constexpr std::uint64_t kUsualRatio = 8;

// Numbers inside the archive; outside of it is damage.
class Reader {
 public:
  explicit Reader(const SourceBytes& zip) : zip_(zip) {}
  std::uint64_t size() const { return zip_.bytes.size(); }

  template <typename T>
  T at(std::uint64_t offset) const {
    check(offset, sizeof(T));
    return load<T>(zip_.bytes, offset);
  }
  std::string_view text(std::uint64_t offset, std::uint64_t length) const {
    check(offset, length);
    return text_of(zip_.bytes.subspan(offset, length));
  }
  void check(std::uint64_t offset, std::uint64_t length) const {
    if (offset > size() || length > size() - offset) fail(offset, "the archive ends before it");
  }
  [[noreturn]] void fail(std::uint64_t offset, std::string_view why, const char* hint = kGetZipAgain) const {
    throw DataError(fmt::format("{}: zip: byte {}: {}", zip_.name, offset, why), hint);
  }

 private:
  const SourceBytes& zip_;
};

struct Directory {
  std::uint64_t offset = 0, entries = 0;
};

std::uint64_t find_end(const Reader& zip) {
  if (zip.size() < kEndSize) zip.fail(0, "too short for an archive");
  const std::uint64_t last = zip.size() - kEndSize;
  for (std::uint64_t back = 0; back <= std::min(last, kLongestComment); ++back) {
    if (zip.at<std::uint32_t>(last - back) == kEnd) return last - back;
  }
  zip.fail(zip.size(), "no directory at the end: it was cut short, or is no zip archive");
}

Directory find_directory(const Reader& zip) {
  const std::uint64_t end = find_end(zip);
  const bool is_64 = end >= kLocatorSize && zip.at<std::uint32_t>(end - kLocatorSize) == kEnd64Locator;
  if (!is_64) return {zip.at<std::uint32_t>(end + 16), zip.at<std::uint16_t>(end + 10)};
  const auto at = zip.at<std::uint64_t>(end - kLocatorSize + 8);
  zip.check(at, kEnd64Size);
  if (zip.at<std::uint32_t>(at) != kEnd64) zip.fail(at, "a damaged directory");
  return {zip.at<std::uint64_t>(at + 48), zip.at<std::uint64_t>(at + 32)};
}

// One entry of the directory; where its 32-bit numbers do not suffice, the extra field has the long ones in this order.
class Entry {
 public:
  Entry(const Reader& zip, std::uint64_t at) : zip_(zip), at_(at) {
    zip.check(at, kCentralSize);
    if (zip.at<std::uint32_t>(at) != kCentralHead) zip.fail(at, "a damaged directory");
    for (std::uint64_t* number : {&size_, &stored_, &head_}) *number = short_number(number);
    std::uint64_t more = zip64_extra();
    for (std::uint64_t* number : {&size_, &stored_, &head_}) {
      if (*number != UINT32_MAX || more == 0) continue;
      *number = zip.at<std::uint64_t>(more);
      more += 8;
    }
  }

  std::uint64_t end() const { return at_ + kCentralSize + name_length() + extra_length() + u16(32); }
  bool is_folder() const { return inner_path().ends_with('/'); }

  ArchiveMember member() const {
    const std::uint16_t method = u16(10);
    if (u16(8) & kEncrypted) zip_.fail(at_, fmt::format("{} is encrypted", name()), kZipMethods);
    if (method != kStored && method != kDeflated)
      zip_.fail(at_, fmt::format("{}: packing method {}", name(), method), kZipMethods);
    if (zip_.at<std::uint32_t>(head_) != kLocalHead) zip_.fail(head_, "a damaged header");
    const std::uint64_t offset =
        head_ + kLocalSize + zip_.at<std::uint16_t>(head_ + 26) + zip_.at<std::uint16_t>(head_ + 28);
    zip_.check(offset, stored_);
    if (method == kStored && stored_ != size_) zip_.fail(at_, fmt::format("{}: damaged sizes", name()));
    return {.name = inner_path(),
            .offset = offset,
            .stored = stored_,
            .size = size_,
            .crc32 = zip_.at<std::uint32_t>(at_ + 16),
            .deflated = method == kDeflated};
  }

 private:
  std::uint16_t u16(std::uint64_t inside) const { return zip_.at<std::uint16_t>(at_ + inside); }
  std::uint64_t name_length() const { return u16(28); }
  std::uint64_t extra_length() const { return u16(30); }
  std::string_view name() const { return zip_.text(at_ + kCentralSize, name_length()); }

  // Some programs for Windows write backslashes between folders, against the format.
  std::string inner_path() const {
    std::string path(name());
    const auto system = zip_.at<std::uint8_t>(at_ + 5);
    const bool is_of_windows = system == kMadeOnFat || system == kMadeOnNtfs;
    if (is_of_windows && path.find('/') == path.npos) std::ranges::replace(path, '\\', '/');
    return path;
  }

  std::uint64_t short_number(const std::uint64_t* which) const {
    return zip_.at<std::uint32_t>(at_ + (which == &size_ ? 24 : which == &stored_ ? 20 : 42));
  }

  // Where its numbers begin; 0: there is none.
  std::uint64_t zip64_extra() const {
    std::uint64_t at = at_ + kCentralSize + name_length();
    for (const std::uint64_t last = at + extra_length(); at + 4 <= last;) {
      if (zip_.at<std::uint16_t>(at) == kZip64Extra) return at + 4;
      at += 4 + zip_.at<std::uint16_t>(at + 2);
    }
    return 0;
  }

  const Reader& zip_;
  std::uint64_t at_;
  std::uint64_t size_ = 0, stored_ = 0, head_ = 0;
};

// Entries that share bytes would make a small archive as large as it likes.
void require_apart(const Reader& zip, const std::vector<ArchiveMember>& members) {
  std::vector<std::pair<std::uint64_t, std::uint64_t>> places;
  for (const ArchiveMember& member : members) places.emplace_back(member.offset, member.offset + member.stored);
  std::ranges::sort(places);
  for (std::size_t i = 1; i < places.size(); ++i) {
    if (places[i].first < places[i - 1].second) zip.fail(places[i].first, "two of its files overlap");
  }
}

// All files are held in memory at once.
void require_memory_for(const std::vector<ArchiveMember>& members, const SourceBytes& zip) {
  const std::uint64_t most = kMaxInflatedBytes + kUsualRatio * zip.bytes.size();
  std::uint64_t left = most;
  for (const ArchiveMember& member : members) {
    const std::uint64_t inflated = member.deflated ? member.size : 0;
    if (inflated > left) {
      throw DataError(fmt::format("{}: zip: its compressed files hold more than {}", zip.name, format_bytes(most)),
                      "make the archive again without compression");
    }
    left -= inflated;
  }
}

}  // namespace

std::vector<ArchiveMember> list_zip(const SourceBytes& zip) {
  const Reader reader(zip);
  const Directory directory = find_directory(reader);
  std::vector<ArchiveMember> members;
  std::uint64_t at = directory.offset;
  for (std::uint64_t i = 0; i < directory.entries; ++i) {
    const Entry entry(reader, at);
    if (!entry.is_folder()) members.push_back(entry.member());
    at = entry.end();
  }
  require_apart(reader, members);
  return members;
}

std::vector<StoredFile> stored_files(ByteView zip, const std::string& source) {
  const SourceBytes archive{source, zip, nullptr};
  std::vector<StoredFile> files;
  for (ArchiveMember& member : list_zip(archive)) {
    if (member.deflated) throw DataError(fmt::format("{}: zip: {} is compressed", source, member.name));
    const ByteView stored = whole_member(archive, member).bytes;
    files.push_back({std::move(member.name), stored});
  }
  return files;
}

std::vector<StoredFile> unpacked_files(ByteView zip, const std::string& source) {
  const SourceBytes archive{source, zip, nullptr};
  std::vector<ArchiveMember> members = list_zip(archive);
  require_memory_for(members, archive);
  std::vector<StoredFile> files;
  for (ArchiveMember& member : members) {
    const SourceBytes whole = whole_member(archive, member);
    files.push_back({std::move(member.name), whole.bytes, whole.owner});
  }
  return files;
}

}  // namespace dtrain::data
