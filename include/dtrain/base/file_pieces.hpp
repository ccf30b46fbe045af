// A file that is read piece by piece while others may write to it. A mapping (MappedFile) would end the process where
// the file is truncated meanwhile.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <dtrain/base/files.hpp>

namespace dtrain {

class FilePieces {
 public:
  explicit FilePieces(Path path, std::size_t most = std::size_t{1} << 20);  // bytes of a piece
  // As it was when the file was opened; what is appended later is not read.
  std::uint64_t size() const { return size_; }
  // The next piece, valid until the next call; empty: the end. Throws Error where the file became shorter.
  std::string_view next();

 private:
  const Path path_;
  FileDescriptor file_;
  std::uint64_t size_ = 0, at_ = 0;
  std::string piece_;
};

}  // namespace dtrain
