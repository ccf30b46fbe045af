// Folders that are sets of pictures and folders that are classes, told apart by their names.
#include <gtest/gtest.h>

#include <dtrain/data/pack.hpp>

#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

PackOptions to_one_set(const TemporaryFolder& folder) {
  return {.sources = {}, .out = folder / "p", .train_ratio = 1, .force = true};
}

// The files as a folder, photos, and as an archive of its content, photos.tar.
std::vector<Path> write_folder_and_archive(const TemporaryFolder& folder, const std::vector<std::string>& names) {
  NamedFiles files;
  for (const std::string& name : names) {
    const Path file = folder / "photos" / name;
    make_folder(file.parent_path());
    files.emplace_back(name, encode_image({1, 1, 1, {7}}, Encoding::png));
    write_file_atomic(file, files.back().second);
  }
  write_file_atomic(folder / "photos.tar", tar_of(files));
  return {folder / "photos", folder / "photos.tar"};
}

TEST(SplitFolders, RefusesSetsOfPicturesInThePlaceOfClasses) {
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"train/1.png", "test/2.png"}, "its folders test, train have the names of data sets"},
      {{"train/1.png", "Valid/2.png", "extra/3.png", "4.png"}, "its folders Valid, train have the names of data sets"},
      {{"val/cat/1.png", "val/dog/2.png", "test/cat/3.png"}, "its folders test, val have the names of data sets"},
      {{"train_set/cat/1.png", "train_set/dog/2.png", "test_set/cat/3.png"},
       "its folders test_set, train_set have the names of data sets"},
      {{"images/train2017/1.png", "images/val2017/2.png"},
       "images: its folders train2017, val2017 have the names of data sets"}};
  for (const auto& [names, text] : cases) {
    TemporaryFolder folder;
    PackOptions options = to_one_set(folder);
    for (const Path& source : write_folder_and_archive(folder, names)) {
      options.sources = {source};
      expect_error([&] { pack(options); }, text);
      expect_error([&] { pack(options); },
                   "name them train, val and test, and put a folder of pictures for each class");
    }
  }
}

TEST(SplitFolders, TakesClassesWhoseNamesHoldWordsOfSets) {
  const std::vector<std::string> cases[] = {{"electric_train", "steam_train"},
                                            {"bus", "train"},
                                            {"car", "test_tube", "train_station"},
                                            {"invalid", "valid"},
                                            {"potato/healthy", "tomato/healthy"}};
  for (const std::vector<std::string>& classes : cases) {
    TemporaryFolder folder;
    std::vector<std::string> names;
    for (const std::string& name : classes) names.push_back(name + "/1.png");
    PackOptions options = to_one_set(folder);
    for (const Path& source : write_folder_and_archive(folder, names)) {
      options.sources = {source};
      EXPECT_EQ(pack(options).classes, classes);
    }
  }
}

TEST(SplitFolders, NamesTheClassesOfASingleSplitWithoutIt) {
  for (const char* outer : {"", "set/"}) {
    TemporaryFolder folder;
    std::vector<std::string> names;
    for (const char* name : {"Train/cat/1.png", "Train/dog/2.png"}) names.push_back(std::string(outer) + name);
    PackOptions options = to_one_set(folder);
    for (const Path& source : write_folder_and_archive(folder, names)) {
      options.sources = {source};
      const PackResult result = pack(options);
      EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
      EXPECT_EQ(result.files.at(0).records, 2u);
    }
  }
}

TEST(SplitFolders, TakesAFolderOfEvaluationForValidation) {
  TemporaryFolder folder;
  PackOptions options{.out = folder / "p"};
  options.sources = {
      write_folder_and_archive(folder, {"train/cat/1.png", "train/dog/2.png", "eval/dog/3.png"}).front()};
  EXPECT_EQ(pack(options).files.at(1).rec, folder / "p_val.rec");
}

}  // namespace
}  // namespace dtrain::data
