#include "config/checks/picture_size.hpp"

#include <gtest/gtest.h>

#include <dtrain/data/image.hpp>
#include <dtrain/data/record.hpp>

#include "common/temporary_folder.hpp"

namespace dtrain::config {
namespace {

// Records of pictures that are 300 x 200 pixels large, and a network of 28 x 28.
struct RunOnPhotographs {
  RunOnPhotographs() {
    bind(set, options);
    const data::Image image{1, 200, 300, std::vector<std::uint8_t>(200 * 300, 7)};
    data::RecordWriter writer(folder / "p.rec");
    for (const data::Encoding encoding : {data::Encoding::png, data::Encoding::jpeg})
      writer.add(0, 0, bytes_of(pictures.emplace_back(data::encode_image(image, encoding))));
    writer.finish();
  }
  void give(const char* name, const char* text) {
    Option& option = *set.find(name);
    option.set(text);
    option.source = Source::flag;
  }
  std::string warning() const { return small_windows(folder / "p", set, options).value_or(""); }

  TemporaryFolder folder;
  std::vector<std::string> pictures;
  TrainOptions options;
  OptionSet set;
};

bool has(const std::string& text, const char* part) { return text.find(part) != std::string::npos; }

TEST(SmallWindows, AreAWarningThatNamesTheOptions) {
  RunOnPhotographs run;
  EXPECT_TRUE(has(run.warning(),
                  "about 200 pixels at their shorter edge, and training and evaluation see windows of "
                  "28x28 pixels: --resize 32 --random-resized-crop 1 "))
      << run.warning();
  run.give("random-resized-crop", "1");
  EXPECT_TRUE(has(run.warning(), "and evaluation sees windows of 28x28 pixels")) << run.warning();
}

TEST(SmallWindows, AreNoWarningWhereTheyShowMostOfThePictureOrTheUserChose) {
  for (const auto& [name, text] : {std::pair("image-shape", "3,100,100"), std::pair("resize", "32"),
                                   std::pair("resize", "0"), std::pair("num-epochs", "0"), std::pair("test-io", "1")}) {
    RunOnPhotographs run;
    run.give(name, text);
    EXPECT_EQ(run.warning(), "") << name;
  }
}

TEST(SmallWindows, AreNoWarningForADetectorWhichSeesWholePictures) {
  RunOnPhotographs run;
  run.options.data.detection.emplace();
  EXPECT_EQ(run.warning(), "");
}

TEST(SmallWindows, AreUnknownWhereTheRecordsAreNotHere) {
  const RunOnPhotographs run;
  EXPECT_FALSE(small_windows(run.folder / "other", run.set, run.options));
  EXPECT_FALSE(small_windows("s3://bucket/p_train", run.set, run.options));
}

}  // namespace
}  // namespace dtrain::config
