#include "cli/commands/train/output_places.hpp"

#include <gtest/gtest.h>

#include "common/temporary_folder.hpp"

namespace dtrain::cli {
namespace {

// Whether `out` is refused for answers of classes cat and dog about this picture.
bool is_refused(const Path& out, const Path& picture) try {
  refuse_folder_of_pictures({"--out-dir", out}, {"cat", "dog"}, {picture});
  return false;
} catch (const UsageError& error) {
  EXPECT_NE(std::string(error.what()).find("contains " + picture.string()), std::string::npos) << error.what();
  return true;
}

TEST(OutputPlaces, OfAnswersAreApartFromThePictures) {
  const TemporaryFolder folder;
  for (const char* name : {"photos/cat/old", "photos/new/old", "sorted"}) make_folder(folder / name);
  std::filesystem::create_directory_symlink(folder / "photos", folder / "album");
  for (const char* name : {"photos/cat/1.jpg", "photos/1.jpg", "photos/new/1.jpg", "photos/cat/old/1.jpg"}) {
    EXPECT_TRUE(is_refused(folder / "photos", folder / name)) << name;
    EXPECT_TRUE(is_refused(folder / "album", folder / name)) << name;
    EXPECT_FALSE(is_refused(folder / "sorted", folder / name)) << name;
    EXPECT_FALSE(is_refused(folder / "photos/sorted", folder / name)) << name;
  }
  EXPECT_FALSE(is_refused(folder / "photos", folder / "photos/new/old/1.jpg"));
  EXPECT_FALSE(is_refused(folder / "photos", "s3://bucket/photos/cat/1.jpg"));
  EXPECT_TRUE(is_refused(".", "1.jpg"));
}

}  // namespace
}  // namespace dtrain::cli
