// The files inside tar and zip archives, read where they are, without unpacking.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "remote/published_files.hpp"
#include "tar_stream.hpp"

namespace dtrain::data {

// Limit of what is inflated into memory as one: a packed tar, or a file of a zip archive.
inline constexpr std::uint64_t kMaxInflatedBytes = 1u << 30;

struct ArchiveMember {
  std::string name;          // its path inside; of a file in a tar within a tar: stem of the inner one, "/", name there
  std::uint64_t offset = 0;  // of its bytes as they are stored
  std::uint64_t stored = 0;  // so many
  std::uint64_t size = 0;    // of the file
  std::uint32_t crc32 = 0;   // of the file, where it is one of a zip archive
  std::uint32_t archive = 0;  // which one of several
  bool deflated = false;
};

// Calls visit for every file until it says false. False: it came to the end, and the archive has no end mark.
bool for_each_in_tar(const SourceBytes& tar, const std::function<bool(const TarEntry&)>& visit);
// APPNOTE.TXT 6.3 with zip64; throws DataError for damage, encryption, several disks, and files that overlap.
std::vector<ArchiveMember> list_zip(const SourceBytes& zip);

// Several archives as one. Memory: the members' names and places; the bytes stay in the files.
class Archives {
 public:
  // .tar, .zip, or .tar.gz of at most 1 GiB unpacked.
  explicit Archives(const std::vector<Path>& files);
  const std::vector<ArchiveMember>& members() const { return members_; }  // in the order of the archives
  SourceBytes open(std::size_t member) const;
  // By its whole name, else by the part of it behind a "/"; below a hidden folder only where no other one ends so. Of
  // members with one name the first. Throws DataError where different names end so.
  std::optional<std::size_t> find(std::string_view name) const;
  // Changes with the archive and the member's place.
  std::string stamp(std::size_t member) const;

 private:
  struct Opened {
    SourceBytes bytes;
    std::string stamp;
  };
  void add_tar(const SourceBytes& tar, std::uint64_t base, const std::string& prefix);
  void index_names();

  std::vector<Opened> opened_;
  std::vector<ArchiveMember> members_;
  std::vector<std::uint32_t> by_file_name_;  // members, sorted by the last part of their names
};

// "SIZE TIME_OF_CHANGE"; "?" for what cannot be looked at.
std::string file_stamp(const Path& file);
bool is_archive(const Path& file);

}  // namespace dtrain::data
