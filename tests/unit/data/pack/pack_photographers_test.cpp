// Folders as cameras, photographers' programs and network drives leave them.
#include <gtest/gtest.h>

#include <dtrain/data/image.hpp>
#include <dtrain/data/pack.hpp>

#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using FileNames = std::vector<std::string>;

class PackPhotographers : public testing::Test {
 protected:
  static std::string one_pixel() { return encode_image({1, 1, 1, {7}}, Encoding::png); }
  void write_pixels(const FileNames& names) {
    for (const std::string& name : names) {
      const Path file = folder / "photos" / name;
      make_folder(file.parent_path());
      write_file_atomic(file, one_pixel());
    }
  }
  PackResult packed(const char* source = "photos") const {
    return pack({.sources = {folder / source}, .out = folder / "p", .train_ratio = 1, .threads = 2});
  }

  TemporaryFolder folder;
};

TEST_F(PackPhotographers, ThumbnailsOfFilmsAreLeftOutAndCounted) {
  write_pixels({"day/IMG_1.JPG", "day/MVI_2.THM", "day/MVI_3.THM", "night/IMG_4.JPG", "films/MVI_5.thm"});
  for (const char* name : {"day/IMG_1.xmp", "day/IMG_1.AAE", "day/MVI_2.MOV", "day/Thumbs.db", "day/._IMG_1.JPG"})
    write_file_atomic(folder / "photos" / name, "no picture");
  const PackResult result = packed();
  EXPECT_EQ(result.classes, (FileNames{"day", "night"}));
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.empty_folders, FileNames{"films"});
  EXPECT_EQ(result.skipped.at(".THM"), (FileNames{"day/MVI_2.THM", "day/MVI_3.THM"}));
  EXPECT_EQ(result.skipped.at(".thm"), FileNames{"films/MVI_5.thm"});
  EXPECT_EQ(result.skipped.at("hidden"), FileNames{"day/._IMG_1.JPG"});
  for (const char* ending : {".xmp", ".AAE", ".MOV", ".db"}) EXPECT_EQ(result.skipped.at(ending).size(), 1u) << ending;
}

TEST_F(PackPhotographers, SlidesAndRawFilesAreLeftOutThoughTheyBeginAsPictures) {
  write_pixels({"a/1.jpg", "b/1.jpg"});
  const FileNames endings{".svs", ".NDPI", ".scn", ".bif", ".dng", ".cr2", ".CR3", ".nef",
                          ".raf", ".orf",  ".rw2", ".fff", ".hif", ".psd", ".ppm"};
  for (const std::string& ending : endings) write_pixels({"a/2" + ending});
  const PackResult result = packed();
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{1, 1}));
  for (const std::string& ending : endings) {
    EXPECT_TRUE(is_unread_picture(ending)) << ending;
    EXPECT_EQ(result.skipped.at(ending), FileNames{"a/2" + ending});
  }
}

TEST_F(PackPhotographers, FoldersOfDrivesAndOfFileSystemsAreNoClasses) {
  write_pixels({"cat/1.jpg", "dog/1.jpg", "cat/@eaDir/1.jpg/SYNOPHOTO_THUMB_M.jpg", "#recycle/cat/0.jpg",
                "$RECYCLE.BIN/0.jpg", "@Recycle/0.jpg", "System Volume Information/0.jpg", "lost+found/0.jpg"});
  const PackResult result = packed();
  EXPECT_EQ(result.classes, (FileNames{"cat", "dog"}));
  EXPECT_EQ(result.skipped.at("hidden"), (FileNames{"#recycle", "$RECYCLE.BIN", "@Recycle", "System Volume Information",
                                                    "lost+found", "cat/@eaDir"}));
}

TEST_F(PackPhotographers, AClassMayBeALinkButNoFolderIsTwoClasses) {
  write_pixels({"b/1.jpg", "c/1.jpg", ".store/d/1.jpg"});
  make_folder(folder / "elsewhere");
  write_file_atomic(folder / "elsewhere/1.jpg", one_pixel());
  const std::pair<const char*, const char*> links[]{
      {"../elsewhere", "e"}, {".store/d", "d"}, {"c", "a"}, {"b", "twin"}, {"../c", "b/more"}};
  for (const auto& [target, name] : links) std::filesystem::create_directory_symlink(target, folder / "photos" / name);
  const PackResult result = packed();
  EXPECT_EQ(result.classes, (FileNames{"b", "c", "d", "e"}));
  EXPECT_EQ(result.skipped.at("a link to a folder that is packed itself"), (FileNames{"a", "b/more", "twin"}));
  EXPECT_TRUE(result.empty_folders.empty());
}

TEST_F(PackPhotographers, AnArchiveSaysWhatItHoldsBesidePicturesAsAFolderDoes) {
  const FileNames names{"cat/1.jpg", "cat/2.heic", "cat/3.THM", "cat/._1.jpg", "cat/.DS_Store", "dog/1.jpg", "README"};
  NamedFiles files;
  for (const std::string& name : names) files.emplace_back(name, one_pixel());
  write_file_atomic(folder / "photos.zip", zip_of(files));
  const PackResult result = packed("photos.zip");
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{1, 1}));
  EXPECT_EQ(result.skipped.size(), 4u);
  EXPECT_EQ(result.skipped.at(".heic"), FileNames{"cat/2.heic"});
  EXPECT_EQ(result.skipped.at(".THM"), FileNames{"cat/3.THM"});
  EXPECT_EQ(result.skipped.at("no ending"), FileNames{"README"});
  EXPECT_EQ(result.skipped.at("hidden"), FileNames{"cat/._1.jpg"});
}

}  // namespace
}  // namespace dtrain::data
