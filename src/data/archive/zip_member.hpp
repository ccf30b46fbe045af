// The content of one file of a zip archive, compared with the size and the checksum that the directory states.
#pragma once

#include <memory>

#include "archive.hpp"

namespace dtrain::data {

// Piece after piece, in bounded memory. The archive must live as long.
class MemberPieces {
 public:
  MemberPieces(const SourceBytes& archive, const ArchiveMember& member);
  ~MemberPieces();
  // The next bytes, until the next call; empty behind the last, where all of them are compared.
  // Throws DataError for damage.
  ByteView next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The whole file: a part of the archive where it is stored, else in memory. Throws DataError for damage, and for a
// deflated file of more than kMaxInflatedBytes.
SourceBytes whole_member(const SourceBytes& archive, const ArchiveMember& member);

}  // namespace dtrain::data
