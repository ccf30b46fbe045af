#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/nn/networks.hpp>

#include "config/data_options.hpp"

namespace dtrain::config {
namespace {

struct ViewOptions {
  ViewOptions() { bind_test_views(set, options); }
  DataOptions options;
  OptionSet set;
};

Json views_json(const Json& number) { return Json::object({{"test_views", number}}); }

TEST(TestViews, AreTakenFromTheCheckpoint) {
  for (const char* views : {"1", "2", "6"}) {
    DataOptions trained;
    trained.test_views = views;
    ViewOptions later;
    later.options.test_views = "2";
    take_test_views(preprocessing_of(trained), later.set, later.options);
    EXPECT_EQ(later.options.test_views, views);
  }
}

TEST(TestViews, OfTheUserDecide) {
  ViewOptions chosen;
  Option& option = *chosen.set.find("test-views");
  option.set("2");
  option.source = Source::flag;
  take_test_views(views_json(6), chosen.set, chosen.options);
  EXPECT_EQ(test_views(chosen.options), 2);
}

TEST(TestViews, AreThoseOfTheOptionsWhereTheCheckpointHasNone) {
  for (const Json& old : {Json(), Json::object({{"resize", 28}})}) {
    ViewOptions options;
    options.options.test_views = "6";
    take_test_views(old, options.set, options.options);
    EXPECT_EQ(test_views(options.options), 6);
  }
}

TEST(TestViews, ThatNoOptionChoosesAreDamage) {
  for (const Json& wrong : {Json(3), Json(0), Json("6"), Json(1.5), Json::array()}) {
    ViewOptions options;
    EXPECT_THROW(take_test_views(views_json(wrong), options.set, options.options), DataError) << wrong.dump();
  }
}

TEST(TestViews, OfADetectorAreNone) {
  DataOptions options;
  options.image = {3, 64, 64};
  suit_network(nn::build_network({.name = "mask-rcnn", .image = options.image, .classes = 3, .backbone = "resnet-18"}),
               options);
  EXPECT_FALSE(preprocessing_of(options).find("test_views"));
}

}  // namespace
}  // namespace dtrain::config
