#include "cli/own_outputs.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/data/image.hpp>

#include "common/temporary_folder.hpp"
#include "plot/drawing.hpp"

namespace dtrain::cli {
namespace {

const data::Image kGrey{1, 2, 2, {1, 2, 3, 4}};

TEST(OwnOutputs, ReplaceAPictureThatDtrainDrewAndNoOther) {
  TemporaryFolder folder;
  const Path file = folder / "picture";
  EXPECT_NO_THROW(refuse_to_replace_picture("--out", file)) << "it is not there";
  for (const std::string& own : {data::encode_own_png(kGrey), plot::to_svg({10, 10, {}}), std::string()}) {
    write_file_atomic(file, own);
    EXPECT_NO_THROW(refuse_to_replace_picture("--out", file)) << own;
  }
  for (const std::string& other :
       {data::encode_image(kGrey, data::Encoding::png),
        std::string("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"10\">\n</svg>\n"), std::string("text")}) {
    write_file_atomic(file, other);
    EXPECT_THROW(refuse_to_replace_picture("--out", file), UsageError) << other;
    EXPECT_EQ(read_file(file), other);
  }
}

TEST(OwnOutputs, ReplaceATableWithOneOfTheirHeads) {
  TemporaryFolder folder;
  const Path file = folder / "table.csv";
  write_file_atomic(file, "a,b\n1,2\n");
  EXPECT_NO_THROW(refuse_to_replace_table("--report", file, {"x,y", "a,b"}));
  EXPECT_THROW(refuse_to_replace_table("--report", file, {"x,y", "a,b,c"}), UsageError);
}

TEST(OwnOutputs, HaveAnEndingThatNamesTheirFormat) {
  EXPECT_NO_THROW(require_ending("--out", "a.b/run.png", {".svg", ".png"}));
  for (const char* name : {"run.jpg", "run", "run.png/run", ".png", ""})
    EXPECT_THROW(require_ending("--out", name, {".svg", ".png"}), UsageError) << name;
}

}  // namespace
}  // namespace dtrain::cli
