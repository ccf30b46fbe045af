// Files: whole reads, mappings, and writes that survive a crash. Every failure is an Error with the path and errno's
// text, and a DiskFull where there is no room.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include <dtrain/base/error.hpp>

namespace dtrain {

using Path = std::filesystem::path;
using ByteView = std::span<const std::byte>;

// The disk is full, or the user's share of it.
class DiskFull : public Error {
 public:
  using Error::Error;
};

inline ByteView bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }
inline std::string_view text_of(ByteView bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

// The permissions of a file that its owner alone may read and write.
inline constexpr unsigned kOwnerOnly = 0600;

// The whole content. FIFOs, terminals and other devices are read only by a name in /dev or /proc, such as /dev/stdin or
// the /dev/fd/63 of the shell's <(...), and refused by any other: nothing waits for the writer of a FIFO.
std::string read_file(const Path& path);

// Owns one file descriptor; -1 is "none".
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(other.release()) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor();
  int get() const { return fd_; }
  int release();
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// What is left of an open file; `path` names it in errors.
std::string read_file(const FileDescriptor& file, const Path& path);

// A whole file mapped read-only; a FIFO is refused, whatever names it. Where it is truncated meanwhile or its disk
// fails, the next access ends the process with a message that names the file.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const Path& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  ~MappedFile();
  ByteView bytes() const { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  std::size_t size_ = 0;
  int watch_ = -1;  // slot of the table that names the file after a fault
};

// Writes a temporary file (base/temporaries.hpp) beside PATH and on commit() makes it PATH: fsync of the file, rename,
// fsync of the folder. Without commit() the destructor removes it, so PATH either holds the whole new content or what
// it held before. Several may be written for one PATH at once, also on different machines: the last commit() stays.
class AtomicFile {
 public:
  // permissions: as of open(2), less the umask. Throws UsageError where something is there that is no regular file.
  explicit AtomicFile(Path path, unsigned permissions = 0666);
  AtomicFile(const AtomicFile&) = delete;
  ~AtomicFile();
  void write(ByteView bytes);
  void write(std::string_view text) { write(bytes_of(text)); }
  // Overwrites bytes that were written before, for headers that are known last.
  void write_at(std::uint64_t offset, ByteView bytes);
  std::uint64_t size() const { return size_; }
  // The new file has the permissions of the one that it replaces, and its owner and group as far as this process may
  // give them.
  void keep_access();
  // All that was written is on disk under the temporary name: a full disk shows here, before commit() replaces
  // anything.
  void sync();
  void commit();

 private:
  void flush();
  Path path_, temporary_;
  FileDescriptor fd_;
  std::string buffer_;
  std::uint64_t size_ = 0;
};

void write_file_atomic(const Path& path, std::string_view content, unsigned permissions = 0666);
// Renames a file or a folder and returns once the new name survives a loss of power. Both names are in one folder.
void rename_durably(const Path& from, const Path& to);
// The name is in its folder, which is listed for that: on NFS a name that was looked up before it existed stays
// invisible for half a minute otherwise. False also where the folder cannot be read: for a look that is taken again.
bool is_listed(const Path& path);
// The same, for who acts on a name that is not there. Throws Error where the folder cannot be read, for example because
// its file server does not answer; where there is no such folder, nothing is in it.
[[nodiscard]] bool is_listed_or_throw(const Path& path);
// Creates the folder and its parents; an Error names the part that is in the way.
void make_folder(const Path& path);
// Where temporary files go: $TMPDIR, or /tmp where it is not set or empty. Throws Error that names TMPDIR where there
// is no such folder.
Path temporary_folder();
// Makes a folder with a name of its own, which begins with `stem`, where temporary files go (TMPDIR). `hint`: what to
// do where there is no room for it.
Path make_temporary_folder(std::string_view stem,
                           const std::string& hint = "set TMPDIR to a writable folder with free space");

// Such a folder, which is removed with all its content on destruction.
class ScratchFolder {
 public:
  explicit ScratchFolder(std::string_view stem = "dtrain") : path_(make_temporary_folder(stem)) {}
  ~ScratchFolder();
  ScratchFolder(const ScratchFolder&) = delete;
  const Path& path() const { return path_; }

 private:
  Path path_;
};

}  // namespace dtrain
