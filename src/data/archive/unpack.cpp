#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <future>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/data/copy.hpp>
#include <dtrain/data/record.hpp>
#include <dtrain/data/remote.hpp>
#include <dtrain/data/zip.hpp>
#include <dtrain/net/http.hpp>

#include "archive.hpp"
#include "gzip_stream.hpp"
#include "tar_stream.hpp"
#include "unpack_folder.hpp"
#include "zip_member.hpp"

namespace dtrain::data {
namespace {

constexpr std::uint64_t kWindow = 32u << 20;

// An archive, local or remote, read in windows: while one is used the next one comes.
class Archive {
 public:
  Archive(net::ObjectStore& store, const std::string& from) : store_(store), url_(from) {
    if (is_remote(from)) {
      state_ = store.state(from);
      version_ = fmt::format("{} {}{}", state_.size, state_.etag, state_.last_modified);
    } else {
      local_ = MappedFile(from);
      state_.size = local_.bytes().size();
      version_ = file_stamp(from);
    }
  }
  std::uint64_t size() const { return state_.size; }
  // Distinguishes this archive from another of the same name.
  const std::string& version() const { return version_; }

  void read(std::uint64_t offset, std::span<std::byte> into) {
    if (!is_remote(url_)) {
      std::memcpy(into.data(), local_.bytes().data() + offset, into.size());
      return;
    }
    while (!into.empty()) {
      if (offset < begin_ || offset >= begin_ + window_.size()) turn_to(offset);
      const std::uint64_t count = std::min<std::uint64_t>(into.size(), begin_ + window_.size() - offset);
      std::memcpy(into.data(), window_.data() + (offset - begin_), count);
      into = into.subspan(count);
      offset += count;
    }
  }

 private:
  std::string fetch(std::uint64_t offset) {
    std::string window(std::min(kWindow, state_.size - offset), '\0');
    store_.read(url_, state_, offset, std::as_writable_bytes(std::span(window)));
    return window;
  }

  void turn_to(std::uint64_t offset) {
    const std::uint64_t next = begin_ + window_.size();
    const bool is_next = coming_.valid() && offset == next;
    std::string window = is_next ? coming_.get() : fetch(offset);
    begin_ = offset;
    window_ = std::move(window);
    const std::uint64_t after = begin_ + window_.size();
    if (after < state_.size) coming_ = std::async(std::launch::async, [this, after] { return fetch(after); });
  }

  net::ObjectStore& store_;
  std::string url_, version_;
  net::ObjectState state_;
  MappedFile local_;
  std::uint64_t begin_ = 0;
  std::string window_;
  std::future<std::string> coming_;
};

// What an archive is, by its first bytes.
enum class ArchiveKind { tar, gzip, zip };

struct ForeignArchive {
  std::string_view start, name, tool;
};
constexpr std::array<ForeignArchive, 5> kForeignArchives{{{"\xfd"
                                                           "7zXZ",
                                                           "xz", "xz -d"},
                                                          {"BZh", "bzip2", "bzip2 -d"},
                                                          {"\x28\xb5\x2f\xfd", "zstd", "zstd -d"},
                                                          {"7z\xbc\xaf", "7-Zip", "7z x"},
                                                          {"Rar!", "RAR", "unrar x"}}};

void refuse_foreign(const std::string& shown, std::string_view first) {
  for (const ForeignArchive& foreign : kForeignArchives) {
    if (!first.starts_with(foreign.start)) continue;
    throw DataError(fmt::format("{}: is packed by {}; dtrain unpacks tar, tar.gz and zip", shown, foreign.name),
                    fmt::format("decompress it first: {} {}", foreign.tool, Path(shown).filename().string()));
  }
}

void refuse_records(const std::string& shown, std::string_view first) {
  std::uint32_t magic = 0;
  if (first.size() < sizeof magic) return;
  std::memcpy(&magic, first.data(), sizeof magic);
  if (magic != kRecordMagic) return;
  throw DataError(shown + ": is a record file, no tar or zip archive",
                  "`dtrain data ls` and `dtrain data show` read it as it is");
}

ArchiveKind kind_of(Archive& archive, const std::string& shown) {
  constexpr std::uint64_t kFirst = 8;
  std::string first(std::min(kFirst, archive.size()), '\0');
  archive.read(0, std::as_writable_bytes(std::span(first)));
  refuse_foreign(shown, first);
  refuse_records(shown, first);
  if (first.starts_with(kZipStart)) return ArchiveKind::zip;
  return first.starts_with(kGzipStart) ? ArchiveKind::gzip : ArchiveKind::tar;
}

class Unpacker {
 public:
  Unpacker(net::ObjectStore& store, const UnpackOptions& options)
      : options_(options),
        shown_(net::shown_url(options.from)),
        archive_(store, options.from),
        folder_(options.out, options.from, archive_.version()) {}

  UnpackResult run() {
    if (archive_.size() == 0) throw DataError(shown_ + ": is empty, no archive", "copy it again");
    switch (kind_of(archive_, shown_)) {
      case ArchiveKind::zip:
        unpack_zip();
        break;
      case ArchiveKind::gzip:
        unpack_gzip();
        break;
      case ArchiveKind::tar:
        unpack_tar(archive_.size(), result_.resumed_at = folder_.where_it_ended(),
                   [&](std::uint64_t at, std::span<std::byte> into) { archive_.read(at, into); });
    }
    folder_.finish();
    return result_;
  }

 private:
  // `reached` of the archive's bytes are done with where an entry ends.
  void entry_done(std::uint64_t reached) const {
    if (options_.progress) options_.progress(reached, archive_.size());
  }

  void unpack_tar(std::uint64_t size, std::uint64_t offset, const TarRead& read) {
    while (const auto entry = next_tar_entry(shown_, size, offset, read)) {
      write(*entry, read);
      offset = entry->end;
      folder_.reached(offset);
      entry_done(offset);
    }
    result_.lacks_end_mark = offset >= size;
  }

  void write(const TarEntry& entry, const TarRead& read) {
    constexpr std::uint64_t kReadAtOnce = 1u << 20;
    if (entry.folder) return folder_.make_folder(entry.name);
    std::string piece;
    std::uint64_t at = 0;
    folder_.write(entry.name, [&] {
      piece.resize(std::min(kReadAtOnce, entry.size - at));
      if (!piece.empty()) read(entry.content + at, std::as_writable_bytes(std::span(piece)));
      at += piece.size();
      return bytes_of(piece);
    });
    count(entry.size);
  }

  // From front to end in one go: a stream cannot be taken up in its middle.
  void unpack_gzip() {
    constexpr std::uint64_t kUnknownSize = std::uint64_t{1} << 62;
    GzipStream stream(shown_, archive_.size(),
                      [&](std::uint64_t at, std::span<std::byte> into) { archive_.read(at, into); });
    const TarRead read = [&](std::uint64_t at, std::span<std::byte> into) { stream.read(at, into); };
    for (std::uint64_t offset = 0;;) {
      const auto entry = next_tar_entry(shown_, kUnknownSize, offset, read);
      if (!entry) return stream.finish();
      write(*entry, read);
      offset = entry->end;
      entry_done(stream.taken());
    }
  }

  void unpack_zip() {
    if (is_remote(options_.from)) {
      throw UsageError(fmt::format("{}: a zip archive is read from its end, which needs a copy of it", shown_),
                       fmt::format("dtrain data cp {} . first", shown_));
    }
    const SourceBytes zip = map_source(options_.from);
    std::vector<ArchiveMember> members = list_zip(zip);
    std::ranges::stable_sort(members, {}, &ArchiveMember::offset);
    result_.resumed_at = folder_.where_it_ended();
    for (const ArchiveMember& member : members) {
      if (member.offset < result_.resumed_at) continue;
      MemberPieces pieces(zip, member);
      folder_.write(member.name, [&] { return pieces.next(); });
      count(member.size);
      folder_.reached(member.offset + member.stored);
      entry_done(member.offset + member.stored);
    }
  }

  void count(std::uint64_t bytes) {
    ++result_.files;
    result_.bytes += bytes;
  }

  const UnpackOptions& options_;
  const std::string shown_;  // the archive's name in messages: its URL may hold secrets
  Archive archive_;
  UnpackFolder folder_;
  UnpackResult result_;
};

}  // namespace

UnpackResult unpack_archive(net::ObjectStore& store, const UnpackOptions& options) {
  return Unpacker(store, options).run();
}

}  // namespace dtrain::data
