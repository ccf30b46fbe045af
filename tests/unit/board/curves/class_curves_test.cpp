#include "board/curves/class_curves.hpp"

#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>

namespace dtrain::board {
namespace {

constexpr const char* kHead = "sample,label,class,predicted_label,predicted,probability\n";

TEST(ClassCurves, PrecisionFallsAndRecallGrowsAsLessIsLeftOut) {
  const Json all = class_curves(std::string(kHead) +
                                "0,0,cat,0,cat,0.9\n"
                                "1,1,\"dog, big\",0,cat,0.8\n"
                                "2,0,cat,0,cat,0.7\n"
                                "3,0,cat,1,\"dog, big\",0.6\n");
  const auto& curves = all.at("curves").as_array();
  ASSERT_EQ(curves.size(), 2u);
  EXPECT_EQ(curves[0].at("name").as_string(), "dog, big") << "the worst one is first";
  EXPECT_EQ(curves[0].at("f1").as_number(), 0);
  EXPECT_EQ(curves[1].at("recall").dump(), "[0.3333333333333333,0.3333333333333333,0.6666666666666666]");
  EXPECT_EQ(curves[1].at("precision").dump(), "[1.0,0.5,0.6666666666666666]");
  EXPECT_NEAR(curves[1].at("f1").as_number(), 2.0 / 3, 1e-12);
}

// The dog is never named wrongly but seldom; the cat is named for all of them.
TEST(ClassCurves, TheLowestF1IsFirst) {
  const Json all = class_curves(std::string(kHead) +
                                "0,0,cat,0,cat,0.9\n"
                                "1,1,dog,1,dog,0.9\n"
                                "2,1,dog,0,cat,0.5\n"
                                "3,1,dog,0,cat,0.4\n"
                                "4,0,cat,0,cat,0.3\n");
  const auto& curves = all.at("curves").as_array();
  EXPECT_EQ(curves[0].at("name").as_string(), "dog");
  EXPECT_NEAR(curves[0].at("f1").as_number(), 2.0 * 1 / (3 + 1), 1e-12);
  EXPECT_NEAR(curves[1].at("f1").as_number(), 2.0 * 2 / (2 + 4), 1e-12);
}

TEST(ClassCurves, LongOnesKeepTheirLastPoint) {
  std::string table = kHead;
  for (int i = 0; i < 1003; ++i) table += "0,0,cat,0,cat,0.5\n";
  const Json curve = class_curves(table).at("curves").as_array().at(0);
  EXPECT_LE(curve.at("recall").as_array().size(), 65u);
  EXPECT_EQ(curve.at("recall").as_array().back().as_number(), 1);
}

TEST(ClassCurves, RefuseAnotherTable) { EXPECT_THROW(class_curves("a,b\n1,2\n"), DataError); }

}  // namespace
}  // namespace dtrain::board
