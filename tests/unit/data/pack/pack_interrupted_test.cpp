// A set that is made of its own files, and was interrupted: it goes on, and keeps the names of its classes.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/class_names.hpp>
#include <dtrain/data/pack.hpp>
#include <dtrain/data/record.hpp>

#include "data/temporary_folder.hpp"

namespace dtrain::data {
namespace {

using ClassTexts = std::vector<std::string>;

class PackInterrupted : public testing::Test {
 protected:
  void SetUp() override {
    write_pictures("photos/cat");
    write_pictures("photos/dog");
    pack(options_from("photos"));
  }
  // Pictures of one pixel, all different.
  void write_pictures(const std::string& of) {
    make_folder(folder / of);
    for (int i = 0; i < 5; ++i) {
      const Image image{1, 1, 1, {static_cast<std::uint8_t>(next_++)}};
      write_file_atomic(folder / fmt::format("{}/{}.png", of, i), encode_image(image, Encoding::png));
    }
  }
  PackOptions options_from(const std::string& source) const {
    return {.sources = {folder / source},
            .out = folder / "p",
            .encoding = std::nullopt,
            .train_ratio = 1,
            .threads = 2,
            .force = true};
  }
  static void stop_at_third(PackOptions options) {
    options.progress = [](std::uint64_t done, std::uint64_t) {
      if (done == 3) throw Error("stopped at the third picture");
    };
    expect_error<Error>([&] { pack(options); }, "stopped at the third picture");
  }
  ClassTexts classes_of(const char* set) const { return class_names(find_records((folder / set).string())); }

  TemporaryFolder folder;
  const ClassTexts catdog{"cat", "dog"};

 private:
  int next_ = 0;
};

TEST_F(PackInterrupted, ASetOfItselfGoesOnWithItsPartAndTheNamesOfItsClasses) {
  PackOptions options = options_from("p");
  options.shuffle = true;
  options.out = folder / "q";
  pack(options);
  const std::string whole = read_file(folder / "q.rec");
  options.out = folder / "p";
  stop_at_third(options);
  ASSERT_NE(read_file(folder / "p.rec"), whole);
  write_file_atomic(folder / "p.rec.part", whole.substr(0, whole.size() * 2 / 3));  // what a kill may leave
  const PackResult result = pack(options);
  EXPECT_GE(result.taken_up, 6u);
  EXPECT_EQ(result.classes, catdog);
  EXPECT_EQ(classes_of("p"), catdog);
  EXPECT_EQ(read_file(folder / "p.rec"), whole);
  EXPECT_EQ(read_file(folder / "p.pack.json").find("earlier"), std::string::npos);
}

TEST_F(PackInterrupted, ASetOfItselfKeepsTheNamesOfItsClassesWithOtherOptionsToo) {
  PackOptions options = options_from("p");
  for (const int seed : {1, 2, 3}) {
    options.shuffle = true;
    options.seed = static_cast<std::uint64_t>(seed);
    stop_at_third(options);
  }
  options.shuffle = false;
  EXPECT_EQ(pack(options).classes, catdog);
  EXPECT_EQ(classes_of("p"), catdog);
}

TEST_F(PackInterrupted, TheRecordsOfAnEarlierSetHaveTheNamesOfTheirOwnClasses) {
  write_pictures("birds/emu");
  write_pictures("birds/owl");
  stop_at_third(options_from("birds"));
  const PackOptions options = options_from("p");  // whose records are still those of cats and dogs
  stop_at_third(options);
  EXPECT_EQ(pack(options).classes, catdog);
  EXPECT_EQ(classes_of("p"), catdog);
  EXPECT_EQ(pack(options_from("birds")).classes, (ClassTexts{"emu", "owl"}));
  EXPECT_EQ(classes_of("p"), (ClassTexts{"emu", "owl"}));
}

}  // namespace
}  // namespace dtrain::data
