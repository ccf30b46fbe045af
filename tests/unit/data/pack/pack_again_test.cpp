// The same set once more: what of it is kept, what is made again, and which classes the packed pictures lack.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using Names = std::vector<std::string>;

class PackAgain : public testing::Test {
 protected:
  PackAgain() {
    for (const char* name : {"cat", "dog"}) write_class(name, 5);
  }
  // Pictures of one pixel, all different.
  void write_class(const std::string& name, int count) {
    make_folder(folder / "photos" / name);
    for (int i = 0; i < count; ++i) {
      const Image image{1, 1, 1, {static_cast<std::uint8_t>(next_++)}};
      write_file_atomic(folder / fmt::format("photos/{}/{}.png", name, i), encode_image(image, Encoding::png));
    }
  }
  void damage(const std::string& picture) const { write_file_atomic(folder / "photos" / picture, "no picture"); }

  TemporaryFolder folder;
  PackOptions options{
      .sources = {folder / "photos"}, .out = folder / "p", .encoding = std::nullopt, .train_ratio = 1, .threads = 2};

 private:
  int next_ = 0;
};

TEST_F(PackAgain, MakesAFinishedSetAnewByForce) {
  pack(options);
  const std::string whole = read_file(folder / "p.rec");
  std::string damaged = whole;
  damaged[40] = static_cast<char>(~damaged[40]);
  write_file_atomic(folder / "p.rec", damaged);
  EXPECT_EQ(pack(options).taken_up, 10u);
  EXPECT_GT(verify_records(folder / "p.rec").problem_count, 0u);
  options.force = true;
  EXPECT_EQ(pack(options).taken_up, 0u);
  EXPECT_EQ(read_file(folder / "p.rec"), whole);
  EXPECT_EQ(read_file(folder / "p.pack.json").find("earlier"), std::string::npos);
}

TEST_F(PackAgain, GoesOnWithAStoppedSetAlsoByForce) {
  pack(options);
  options.shards = 2;
  options.force = true;
  options.progress = [](std::uint64_t done, std::uint64_t) {
    if (done == 8) throw Error("stopped in the second file");
  };
  expect_error<Error>([&] { pack(options); }, "stopped in the second file");
  options.progress = nullptr;
  const std::string first = read_file(folder / "p_0.rec");
  write_file_atomic(folder / "p_0.rec", std::string(first.size(), 'x'));
  EXPECT_GE(pack(options).taken_up, 5u);
  EXPECT_NE(read_file(folder / "p_0.rec"), first) << "it was complete";
  EXPECT_EQ(pack(options).taken_up, 0u);
  EXPECT_EQ(read_file(folder / "p_0.rec"), first);
}

TEST_F(PackAgain, WritesAListThatIsGone) {
  pack(options);
  const std::string list = read_file(folder / "p.lst");
  std::filesystem::remove(folder / "p.lst");
  pack(options);
  EXPECT_EQ(read_file(folder / "p.lst"), list);
}

TEST_F(PackAgain, NamesClassesOfWhichNoPictureCouldBePacked) {
  for (int i = 0; i < 5; ++i) damage(fmt::format("dog/{}.png", i));
  for (int run = 0; run < 2; ++run) {  // the second finds the records of the first
    const PackResult result = pack(options);
    EXPECT_EQ(result.untrained, Names{"dog"}) << run;
    EXPECT_EQ(result.trained_classes, 1u) << run;
  }
  options.out = folder / "q";
  options.train_ratio = std::nullopt;
  const PackResult split = pack(options);
  EXPECT_EQ(split.untrained, Names{"dog"});
  EXPECT_TRUE(split.unvalidated.empty());
}

TEST_F(PackAgain, NamesClassesOfWhichOneSplitGotNoPicture) {
  write_class("bird", 2);
  damage("bird/0.png");
  options.train_ratio = std::nullopt;
  const PackResult result = pack(options);
  const Names& lacking = result.untrained.empty() ? result.unvalidated : result.untrained;
  EXPECT_EQ(lacking, Names{"bird"});
  EXPECT_EQ(result.untrained.size() + result.unvalidated.size(), 1u);
}

TEST_F(PackAgain, AFileHasTheClassesOfTheSetThatWroteItLast) {
  const auto classes = [&] { return class_names(std::vector<Path>{folder / "p_train.rec"}); };
  options.out = folder / "p_train";
  pack(options);
  std::filesystem::rename(folder / "photos/cat", folder / "photos/ant");
  options.out = folder / "p";
  options.train_ratio = 0.6;
  expect_error<UsageError>([&] { pack(options); }, "p_train.rec: is there already");
  options.force = true;
  pack(options);
  EXPECT_EQ(classes(), (Names{"ant", "dog"}));
  EXPECT_FALSE(std::filesystem::exists(folder / "p_train.pack.json")) << "its only file is of another set now";
  std::filesystem::rename(folder / "photos/ant", folder / "photos/bat");
  PackOptions alone = options;
  alone.out = folder / "p_train";
  alone.train_ratio = 1;
  pack(alone);
  EXPECT_EQ(classes(), (Names{"bat", "dog"}));
  EXPECT_EQ(class_names(std::vector<Path>{folder / "p_val.rec"}), (Names{"ant", "dog"})) << "the other file stays";
  std::filesystem::rename(folder / "photos/bat", folder / "photos/ant");
  options.force = false;
  expect_error<UsageError>([&] { pack(options); }, "p_train.rec: is there already");
}

}  // namespace
}  // namespace dtrain::data
