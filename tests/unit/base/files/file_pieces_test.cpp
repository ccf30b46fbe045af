#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/base/file_pieces.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain {
namespace {

TEST(FilePieces, GiveTheFileAsItWasWhenItWasOpened) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "file", "abcdefg");
  FilePieces pieces(folder / "file", 3);
  EXPECT_EQ(pieces.size(), 7u);
  std::string all;
  for (std::string_view piece; !(piece = pieces.next()).empty();) {
    EXPECT_LE(piece.size(), 3u);
    all += piece;
    std::filesystem::resize_file(folder / "file", 100);  // it grows meanwhile
  }
  EXPECT_EQ(all, "abcdefg");
  write_file_atomic(folder / "empty", "");
  EXPECT_TRUE(FilePieces(folder / "empty").next().empty());
}

TEST(FilePieces, SayThatAFileBecameShorter) {
  const TemporaryFolder folder;
  write_file_atomic(folder / "file", "abcdefg");
  FilePieces pieces(folder / "file", 3);
  EXPECT_EQ(pieces.next(), "abc");
  std::filesystem::resize_file(folder / "file", 4);
  try {
    pieces.next();
    FAIL() << "it was read";
  } catch (const Error& error) {
    EXPECT_EQ(error.what(), (folder / "file").string() + ": became shorter while it was copied: 4 bytes in place of 7");
    EXPECT_NE(error.hint().find("run it again"), std::string::npos);
  }
}

TEST(FilePieces, NameWhatCannotBeRead) {
  const TemporaryFolder folder;
  EXPECT_THROW(FilePieces(folder / "missing"), Error);
  EXPECT_THROW(FilePieces(folder.path()), Error);
}

}  // namespace
}  // namespace dtrain
