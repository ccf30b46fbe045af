// What a folder of pictures holds besides the pictures of its classes, and what a prefix holds of an earlier set.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/archive/archive_files.hpp"
#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

void write_small_picture(const Path& file) {
  make_folder(file.parent_path());
  write_file_atomic(file, encode_image({1, 1, 1, {7}}, Encoding::png));
}

void write_two_classes(const TemporaryFolder& folder, int pictures_of_each) {
  for (int i = 0; i < pictures_of_each; ++i) {
    for (const char* name : {"cat", "dog"}) write_small_picture(folder / fmt::format("photos/{}/{}.png", name, i));
  }
}

PackOptions as_it_is(const TemporaryFolder& folder) {
  return {.sources = {folder / "photos"}, .out = folder / "p", .threads = 2};
}

PackOptions one_set(const TemporaryFolder& folder) {
  PackOptions options = as_it_is(folder);
  options.train_ratio = 1;
  return options;
}

TEST(PackFolder, LeavesOutWhatOtherProgramsKeepBesidePictures) {
  TemporaryFolder folder;
  for (const char* name : {"cat/1.jpg", "cat/._1.jpg", ".ipynb_checkpoints/1.jpg", "__MACOSX/cat/._1.jpg",
                           "dog/.cache/2.jpg", "dog/2.jpg"})
    write_small_picture(folder / "photos" / name);
  const PackResult result = pack(one_set(folder));
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  EXPECT_EQ(result.skipped.at("hidden"),
            (std::vector<std::string>{".ipynb_checkpoints", "__MACOSX", "cat/._1.jpg", "dog/.cache"}));
}

TEST(PackFolder, TakesPicturesByTheirContentWhateverTheirNamesEndIn) {
  TemporaryFolder folder;
  for (const char* name : {"cat/1.jfif", "cat/WhatsApp 10.00.00", "cat/none", "dog/2.PNG", "dog/2.PNG_original",
                           "dog/2.png~", "dog/2.txt", "dog/3.nef"})
    write_small_picture(folder / "photos" / name);
  write_file_atomic(folder / "photos/cat/empty", "");
  write_file_atomic(folder / "photos/cat/notes.dat", "text");
  const PackResult result = pack(one_set(folder));
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{3, 2}));
  EXPECT_TRUE(result.problems.empty());
  EXPECT_EQ(result.skipped.at("no ending"), std::vector<std::string>{"cat/empty"});
  EXPECT_EQ(result.skipped.at(".dat"), std::vector<std::string>{"cat/notes.dat"});
  EXPECT_EQ(result.skipped.at(".txt"), std::vector<std::string>{"dog/2.txt"}) << "not opened";
  EXPECT_EQ(result.skipped.at(".PNG_original"), std::vector<std::string>{"dog/2.PNG_original"}) << "a copy of 2.PNG";
  EXPECT_TRUE(is_unread_picture(".nef") && result.skipped.contains(".nef")) << "a thumbnail is its first image";
}

TEST(PackFolder, NamesFoldersWithoutPicturesAndClassesWithoutTraining) {
  TemporaryFolder folder;
  for (const char* name : {"train/a/1.jpg", "train/b/1.jpg", "val/a/2.jpg", "val/c/2.jpg"})
    write_small_picture(folder / "photos" / name);
  for (const char* name : {"train/d/left", "train/d/right", "train/b/below"}) make_folder(folder / "photos" / name);
  const PackResult result = pack(as_it_is(folder));
  EXPECT_EQ(result.empty_folders, (std::vector<std::string>{"train/b/below", "train/d"}));
  EXPECT_EQ(result.untrained, std::vector<std::string>{"c"});
}

TEST(PackFolder, CountsThePicturesThatItPacked) {
  TemporaryFolder folder;
  write_two_classes(folder, 3);
  for (const char* name : {"cat/bad.png", "cat/worse.png"}) write_file_atomic(folder / "photos" / name, "no picture");
  for (int run = 0; run < 2; ++run) {  // the second finds the records of the first
    const PackResult result = pack(one_set(folder));
    EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{3, 3})) << run;
    EXPECT_EQ(result.problems.size(), 2u) << run;
  }
}

const std::vector<std::string> kSplitPictures = {"train/cat/1.png", "train/dog/2.png", "train/dog/3.png",
                                                 "val/cat/4.png",   "val/dog/5.png",   "stray/6.png"};

void expect_two_splits(const TemporaryFolder& folder, const PackResult& result, const std::string& outer) {
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(result.files.size(), 2u);
  EXPECT_EQ(result.files[0].rec, folder / "p_train.rec");
  EXPECT_EQ(result.files[0].records, 3u);
  EXPECT_EQ(result.files[1].rec, folder / "p_val.rec");
  EXPECT_EQ(result.files[1].records, 2u);
  EXPECT_EQ(result.skipped.at("a folder that is of no split"), std::vector<std::string>{outer + "stray"});
}

TEST(PackFolder, FindsTheSplitsInLowerOrUpperCase) {
  TemporaryFolder folder;
  for (const char* name : {"Train/cat/1.png", "Train/dog/2.png", "TEST/cat/3.png", "Val/dog/4.png"})
    write_small_picture(folder / "photos" / name);
  const PackResult result = pack(as_it_is(folder));
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog"}));
  ASSERT_EQ(result.files.size(), 3u);
  EXPECT_EQ(result.files[0].rec, folder / "p_train.rec");
  EXPECT_EQ(result.files[0].records, 2u);
  EXPECT_EQ(result.files[1].rec, folder / "p_val.rec");
  EXPECT_EQ(result.files[2].rec, folder / "p_test.rec");
}

TEST(PackFolder, OfTwoFoldersOfASplitTheOneInLowerCaseCounts) {
  TemporaryFolder folder;
  for (const char* name : {"Train/cat/1.png", "train/cat/2.png", "train/dog/3.png", "val/dog/4.png"})
    write_small_picture(folder / "photos" / name);
  const PackResult result = pack(as_it_is(folder));
  EXPECT_EQ(result.files.at(0).records, 2u);
  EXPECT_EQ(result.skipped.at("a folder that is of no split"), std::vector<std::string>{"Train"});
}

TEST(PackFolder, NamesLinksThatLeadNowhere) {
  TemporaryFolder folder;
  write_two_classes(folder, 2);
  std::filesystem::create_symlink(folder / "gone.jpg", folder / "photos/cat/9.jpg");
  std::filesystem::create_symlink("round.png", folder / "photos/dog/round.png");  // to itself
  std::filesystem::create_symlink(folder / "gone", folder / "photos/bird");
  const PackResult result = pack(one_set(folder));
  ASSERT_EQ(result.problems.size(), 2u);
  EXPECT_EQ(result.problems[0].file, "cat/9.jpg");
  EXPECT_EQ(result.problems[0].what, "the link leads nowhere");
  EXPECT_EQ(result.problems[1].file, "dog/round.png");
  EXPECT_EQ(result.problems[1].what, "the link leads nowhere");
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{2, 2}));
  EXPECT_EQ(result.skipped.at("a link that leads nowhere"), std::vector<std::string>{"bird"});
}

TEST(PackFolder, FollowsNoLinkThatLeadsBack) {
  TemporaryFolder folder;
  write_two_classes(folder, 2);
  write_small_picture(folder / "elsewhere/1.png");
  std::filesystem::create_directory_symlink(folder / "photos/cat", folder / "photos/cat/cat");
  std::filesystem::create_directory_symlink(".", folder / "photos/all");
  std::filesystem::create_directory_symlink("../..", folder / "photos/dog/up");
  std::filesystem::create_directory_symlink(folder / "elsewhere", folder / "photos/eel");
  std::filesystem::create_directory_symlink(folder / "photos", folder / "elsewhere/photos");
  const PackResult result = pack(one_set(folder));
  EXPECT_EQ(result.classes, (std::vector<std::string>{"cat", "dog", "eel"}));
  EXPECT_EQ(result.class_pictures, (std::vector<std::uint64_t>{2, 2, 1}));
  EXPECT_EQ(result.skipped.at("a link that leads back to a folder above it"),
            (std::vector<std::string>{"all", "cat/cat", "dog/up", "eel/photos"}));
}

TEST(PackFolder, LooksForSplitsBehindNoLinkThatLeadsBack) {
  TemporaryFolder folder;
  write_small_picture(folder / "photos/set/1.png");
  std::filesystem::create_directory_symlink(folder / "photos/set", folder / "photos/set/train");
  std::filesystem::create_directory_symlink(folder / "photos", folder / "photos/set/val");
  EXPECT_EQ(pack(one_set(folder)).classes, std::vector<std::string>{"set"});
}

TEST(PackFolder, RefusesFoldersOfSplitsOfWhichOneHasNoClasses) {
  for (const char* flat : {"test", "valid", "Test"}) {
    TemporaryFolder folder;
    const std::string picture = encode_image({1, 1, 1, {7}}, Encoding::png);
    NamedFiles files;
    for (const std::string& name :
         {std::string("train/cat/1.png"), std::string("train/dog/2.png"), fmt::format("{}/3.png", flat)}) {
      write_small_picture(folder / "photos" / name);
      files.emplace_back(name, picture);
    }
    write_file_atomic(folder / "photos.tar", tar_of(files));
    PackOptions options = one_set(folder);
    const std::string packed_alone = (folder / "photos/train").string();
    const std::vector<std::pair<const char*, std::string>> sources{{"photos", packed_alone},
                                                                   {"photos.tar", "unpack it, then pack train"}};
    for (const auto& [source, advice] : sources) {
      options.sources = {folder / source};
      expect_error([&] { pack(options); },
                   fmt::format("its folder train holds folders of classes, and {} beside it holds none", flat));
      expect_error([&] { pack(options); },
                   fmt::format("{} alone, or put a folder of pictures for each class into {}", advice, flat));
    }
    options.sources = {folder / "photos/train"};
    EXPECT_EQ(pack(options).classes, (std::vector<std::string>{"cat", "dog"}));
  }
}

TEST(PackFolder, NamesTheFolderInsideAnArchiveThatCanBePackedAlone) {
  TemporaryFolder folder;
  const std::string picture = encode_image({1, 1, 1, {7}}, Encoding::png);
  write_file_atomic(folder / "k.tar", tar_of({{"k/train/cat/1.png", picture}, {"k/test/2.png", picture}}));
  PackOptions options = one_set(folder);
  options.sources = {folder / "k.tar"};
  expect_error([&] { pack(options); }, "unpack it, then pack k/train alone");
}

TEST(PackFolder, LeavesOutAFlatFolderBesideTwoSplitsWithClasses) {
  TemporaryFolder folder;
  for (const char* name : {"train/cat/1.png", "train/dog/2.png", "val/cat/3.png", "test/4.png"})
    write_small_picture(folder / "photos" / name);
  const PackResult result = pack(as_it_is(folder));
  EXPECT_EQ(result.files.size(), 2u);
  EXPECT_EQ(result.skipped.at("a folder that is of no split"), std::vector<std::string>{"test"});
}

TEST(PackFolder, SaysThatAFileIsEmpty) {
  TemporaryFolder folder;
  write_two_classes(folder, 1);
  write_file_atomic(folder / "photos/cat/empty.jpg", "");
  const PackResult result = pack(one_set(folder));
  ASSERT_EQ(result.problems.size(), 1u);
  EXPECT_EQ(result.problems[0].what, "the file is empty");
  write_file_atomic(folder / "photos.tar",
                    tar_of({{"cat/1.png", encode_image({1, 1, 1, {7}}, Encoding::png)}, {"cat/2.png", ""}}));
  PackOptions options = one_set(folder);
  options.sources = {folder / "photos.tar"};
  options.out = folder / "q";
  const PackResult of_archive = pack(options);
  ASSERT_EQ(of_archive.problems.size(), 1u);
  EXPECT_EQ(of_archive.problems[0].what, "the file is empty");
}

TEST(PackFolder, LeavesOutNamesThatEndAColumnOrALineOfTheList) {
  for (const char* name : {"a\tb", "a\nb"}) {
    TemporaryFolder folder;
    write_two_classes(folder, 1);
    write_small_picture(folder / "photos" / name / "1.png");
    const PackResult result = pack(one_set(folder));
    ASSERT_EQ(result.problems.size(), 1u);
    EXPECT_TRUE(result.problems.front().what.starts_with(name[1] == '\t' ? "its name holds a tab"
                                                                         : "its name holds a line break"));
    EXPECT_EQ(result.files.at(0).records, 2u);
  }
}

TEST(PackFolder, CanBeRepeatedWhereTheNameOfAClassIsNoUtf8) {
  TemporaryFolder folder;
  write_two_classes(folder, 1);
  write_small_picture(folder / "photos/gr\xfcn/1.png");
  pack(one_set(folder));
  EXPECT_EQ(pack(one_set(folder)).taken_up, 3u);
}

TEST(PackFolder, NamesClassesWithASinglePictureThatNothingValidates) {
  TemporaryFolder folder;
  write_two_classes(folder, 5);
  write_small_picture(folder / "photos/bird/1.png");
  PackOptions options = one_set(folder);
  options.train_ratio = std::nullopt;
  EXPECT_EQ(pack(options).unvalidated, std::vector<std::string>{"bird"});
  options.train_ratio = 1;
  options.out = folder / "q";
  EXPECT_TRUE(pack(options).unvalidated.empty()) << "one set is not split";
}

TEST(PackFolder, SaysWhichFilesOfATableOfLabelsAreMissing) {
  TemporaryFolder folder;
  write_small_picture(folder / "photos/1.jpg");
  write_file_atomic(folder / "l.csv", "x.jpg,dog\ny.jpg,cat\n");
  PackOptions options = one_set(folder);
  options.labels = folder / "l.csv";
  options.train_ratio = std::nullopt;
  expect_error([&] { pack(options); }, "l.csv: none of the files that it names is in ");
  expect_error([&] { pack(options); }, "; the first: x.jpg");
  write_file_atomic(folder / "l.csv", "1.jpg,dog\ny.jpg,cat\n");
  expect_error<UsageError>([&] { pack(options); },
                           "too few pictures for a set of its own; 1 file with a label is not there: y.jpg");
}

TEST(PackFolder, CountsPicturesThatNoRowOfATableOfLabelsNames) {
  TemporaryFolder folder;
  for (const char* name : {"1.jpg", "2.png", "below/3.jpg", "below/4.jpg", ".hidden.jpg", "other/5.jpg"})
    write_small_picture(folder / "photos" / name);
  write_file_atomic(folder / "photos/notes.txt", "text");
  write_file_atomic(folder / "l.csv", "./1.jpg,dog\nbelow//3.jpg,cat\n");
  PackOptions options = one_set(folder);
  options.labels = folder / "l.csv";
  const PackResult result = pack(options);
  EXPECT_EQ(result.unlabelled, 2u);
  EXPECT_EQ(result.files.front().records, 2u);
  EXPECT_EQ(result.skipped.at(kNamedByNoRow), std::vector<std::string>{"other"});
  for (const char* name : {"other/in/6.jpg", "other/in/7.jpg", ".git/8.jpg"})
    write_small_picture(folder / "photos" / name);
  std::filesystem::create_directory_symlink(folder / "photos", folder / "photos/link");
  write_file_atomic(folder / "l.csv", "1.jpg,dog\n2.png,dog\nbelow/3.jpg,cat\nbelow/4.jpg,cat\n");
  options.out = folder / "q";
  const PackResult second = pack(options);
  EXPECT_EQ(second.unlabelled, 0u);
  const std::vector<std::string> others{"other", "other/in"};
  EXPECT_EQ(second.skipped.at(kNamedByNoRow), others);
}

TEST(PackFolder, CountsASingleFileThatItLeavesOut) {
  TemporaryFolder folder;
  make_folder(folder / "photos");
  write_file_atomic(folder / "photos/notes.txt", "text");
  expect_error([&] { pack(one_set(folder)); }, "1 file was left out: .txt");
  write_two_classes(folder, 1);
  PackOptions split = one_set(folder);
  split.train_ratio = std::nullopt;
  expect_error<UsageError>([&] { pack(split); }, "packs all pictures into one set; 1 file was left out: .txt");
}

TEST(PackFolder, FindsTheSplitsInTheOnlyFolder) {
  for (const char* outer : {"", "set/", "a/set/"}) {
    TemporaryFolder folder;
    for (const std::string& name : kSplitPictures) write_small_picture(folder / "photos" / outer / name);
    expect_two_splits(folder, pack(as_it_is(folder)), outer);
  }
}

TEST(PackFolder, AFolderBesideThatOfTheSplitsMakesAllOfThemClasses) {
  TemporaryFolder folder;
  for (const char* name : {"set/train/cat/1.png", "set/val/cat/2.png", "other/3.png"})
    write_small_picture(folder / "photos" / name);
  EXPECT_EQ(pack(one_set(folder)).classes, (std::vector<std::string>{"other", "set/train/cat", "set/val/cat"}));
}

TEST(PackFolder, FindsTheSplitsInAnArchive) {
  const std::string picture = encode_image({1, 1, 1, {7}}, Encoding::png);
  for (const char* outer : {"", "set/", "a/set/"}) {
    TemporaryFolder folder;
    NamedFiles files{{std::string(outer) + "beside.png", picture}};
    for (const std::string& name : kSplitPictures) files.emplace_back(outer + name, picture);
    PackOptions options = as_it_is(folder);
    const std::vector<std::pair<std::string, std::string>> archives{{"photos.tar", tar_of(files)},
                                                                    {"photos.zip", zip_of(files)}};
    for (const auto& [name, content] : archives) {
      write_file_atomic(folder / name, content);
      options.sources = {folder / name};
      const PackResult result = pack(options);
      expect_two_splits(folder, result, outer);
      EXPECT_EQ(result.skipped.at("beside the folders of the classes"),
                std::vector<std::string>{std::string(outer) + "beside.png"});
      options.force = true;
    }
  }
}

TEST(PackFolder, NeverMixesTheFilesOfTwoSets) {
  TemporaryFolder folder;
  write_two_classes(folder, 10);
  PackOptions options = one_set(folder);
  options.train_ratio = 0.5;
  options.shards = 4;
  pack(options);
  options.shards = 2;
  expect_error<UsageError>([&] { pack(options); }, "p_train_0.rec: is there already");
  options.train_ratio = 1;
  options.shards = 1;
  expect_error<UsageError>([&] { pack(options); }, "is there already, of an earlier set of this prefix");
  EXPECT_FALSE(std::filesystem::exists(folder / "p.rec"));
  options.train_ratio = 0.5;
  options.shards = 2;
  options.force = true;
  pack(options);
  EXPECT_EQ(find_records(folder / "p_train").size(), 2u);
  for (const char* name : {"p_train_2.rec", "p_train_3.idx", "p_val_2.lst", "p_val_3.rec"})
    EXPECT_FALSE(std::filesystem::exists(folder / name)) << name;
}

TEST(PackFolder, RemovesNoFileThatItPacksFrom) {
  TemporaryFolder folder;
  write_two_classes(folder, 4);
  PackOptions options = one_set(folder);
  options.train_ratio = 0.5;
  pack(options);
  options.train_ratio = 1;
  options.force = true;
  const std::string train = (folder / "p_train").string(), val = (folder / "p_val").string();
  const std::vector<std::vector<Path>> spellings{
      {train + ".rec", val}, {train + "," + val}, {folder / "p_*.rec"}, {train + "."}};
  for (const std::vector<Path>& sources : spellings) {
    options.sources = sources;
    expect_error<UsageError>([&] { pack(options); }, "p_train.rec: the pictures come from this file");
    for (const char* name : {"p_train.rec", "p_val.rec"}) EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
  }
}

TEST(PackFolder, RemovesOnlyFilesOfItsOwnPrefix) {
  TemporaryFolder folder;
  write_two_classes(folder, 2);
  make_folder(folder / "other");
  for (const char* name : {"other/p.rec", "q.rec", "p_note.txt"}) write_file_atomic(folder / name, "of others");
  write_file_atomic(folder / "p.pack.json", R"({"schema": "dtrain.pack/1", "plan": "x", "classes": [], "files": [
      {"file": "other/p.rec"}, {"file": "q.rec"}, {"file": "p_note.txt"}]})");
  PackOptions options = one_set(folder);
  options.force = true;
  pack(options);
  for (const char* name : {"other/p.rec", "q.rec", "p_note.txt"})
    EXPECT_TRUE(std::filesystem::exists(folder / name)) << name;
}

}  // namespace
}  // namespace dtrain::data
