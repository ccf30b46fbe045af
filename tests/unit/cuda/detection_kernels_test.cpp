// Kernels of detectors against what backend/detection computes of one picture on this CPU: the same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>

#include <dtrain/backend/backend.hpp>

#include "backend/detection/doubles.hpp"
#include "backend/detection/region_align.hpp"
#include "backend/detection/regions.hpp"
#include "call.hpp"

namespace dtrain::backend::cuda {
namespace {

// From the last thread to the first: no thread may count on an earlier one.
template <typename Kernel>
void run_detection(const Kernel& kernel) {
  for (std::int64_t i = kernel.threads() - 1; i >= 0; --i) kernel(i);
}

nn::Box random_box(std::minstd_rand& random, float extent) {
  std::uniform_real_distribution<float> at(0, extent * 0.8f), size(4, extent * 0.5f);
  const float left = at(random), top = at(random);
  return {left, top, left + size(random), top + size(random)};
}

constexpr int kHeight = 96, kWidth = 128;

nn::Proposals proposals() {
  return {.regions = 24, .levels = {3, 12, 16}, .image_height = kHeight, .image_width = kWidth, .candidates = 60};
}

AnchorGrid grid_of(const nn::Proposals& layer) {
  return anchor_grid(anchors_of(layer), layer.levels, {layer.image_height, layer.image_width});
}

// Pictures on the device, which is this CPU.
struct Pictures {
  explicit Pictures(std::vector<std::vector<nn::Box>> all) {
    for (const auto& of : all) {
      rows.push_back(
          {kHeight, kWidth - 3, static_cast<std::int32_t>(boxes.size()), static_cast<std::int32_t>(of.size())});
      boxes.insert(boxes.end(), of.begin(), of.end());
    }
    for (std::size_t k = 0; k < boxes.size(); ++k) classes.push_back(static_cast<std::int32_t>(k % 5));
    part_overlaps.resize(boxes.size() * kOverlapParts);
    best_overlaps.resize(boxes.size());
    items.resize(boxes.size());
    samples.pictures = {rows.data(),          boxes.data(),         classes.data(), nullptr,
                        part_overlaps.data(), best_overlaps.data(), items.data()};
  }
  Pictures(const Pictures&) = delete;
  std::vector<nn::Box> boxes_of(std::size_t picture) const {
    const auto first = boxes.begin() + rows[picture].first;
    return {first, first + rows[picture].objects};
  }
  nn::PictureObjects objects_of(std::size_t picture) const {
    nn::PictureObjects objects;
    objects.boxes = boxes_of(picture);
    const auto first = classes.begin() + rows[picture].first;
    objects.classes.assign(first, first + rows[picture].objects);
    objects.height = rows[picture].height, objects.width = rows[picture].width;
    return objects;
  }

  std::vector<PictureRow> rows;
  std::vector<nn::Box> boxes;
  std::vector<std::int32_t> classes;
  std::vector<float> part_overlaps, best_overlaps;
  std::vector<DrawnItem> items;
  Samples samples;
};

std::vector<std::vector<nn::Box>> random_pictures(int n) {
  std::minstd_rand random(7);
  std::vector<std::vector<nn::Box>> pictures;
  for (int i = 0; i < n; ++i) {
    auto& boxes = pictures.emplace_back();
    for (int k = 0; k < i * 40; ++k) boxes.push_back(random_box(random, kHeight));
    if (i > 0) boxes.push_back({600, 600, 610, 610});  // overlaps no anchor
  }
  return pictures;
}

TEST(DetectionKernels, KnowEveryAnchorByItsNumber) {
  const nn::Proposals layer = proposals();
  const AnchorSet set = anchors_of(layer);
  const AnchorGrid grid = grid_of(layer);
  ASSERT_EQ(grid.anchors(), std::ssize(set.boxes));
  for (std::int32_t anchor = 0; anchor < grid.anchors(); ++anchor) {
    const auto index = static_cast<std::size_t>(anchor);
    const nn::Box box = grid.box(anchor), expected = set.boxes[index];
    EXPECT_EQ(std::tie(box.left, box.top, box.right, box.bottom),
              std::tie(expected.left, expected.top, expected.right, expected.bottom));
    const std::int32_t pixel = grid.pixel_at(grid.place_of(anchor));
    EXPECT_EQ(pixel, set.pixels[index / 3]);
    EXPECT_EQ(grid.anchor_at(pixel, anchor % 3), anchor);
  }
  EXPECT_EQ(grid.anchor_at(16, 0), -1) << "the column behind the first level";
}

TEST(DetectionKernels, MatchAnchorsAsOnePictureIsMatched) {
  const AnchorSet set = anchors_of(proposals());
  const AnchorGrid grid = grid_of(proposals());
  const Pictures pictures(random_pictures(4));
  for (const MatchRule& rule : {MatchRule{}, MatchRule{0.3f, 0.7f, true}, MatchRule{0.5f, 0.5f, false}}) {
    std::vector<std::int32_t> matches(4 * set.boxes.size());
    run_detection(PartOverlaps{&pictures.samples, grid, 4});
    run_detection(BestOverlaps{&pictures.samples, 4});
    run_detection(MatchAnchors{&pictures.samples, grid, rule, matches.data(), 4});
    for (std::size_t picture = 0; picture < 4; ++picture) {
      const auto first = matches.begin() + static_cast<std::ptrdiff_t>(picture * set.boxes.size());
      EXPECT_EQ(std::vector(first, first + std::ssize(set.boxes)),
                match_anchors(set.boxes, pictures.boxes_of(picture), rule))
          << picture;
    }
  }
}

// The room of a selection.
struct Selection {
  Selection(const Segments& of, std::int64_t n)
      : counts(static_cast<std::size_t>(n * of.count * of.parts * kDigits), -1),
        totals(static_cast<std::size_t>(n * of.count * kDigits), -1),
        picked(static_cast<std::size_t>(2 * n * of.count * of.parts), -1),
        picks(static_cast<std::size_t>(n * of.picks), -7),
        state(static_cast<std::size_t>(n * of.count)) {}
  SelectRoom room() { return {counts.data(), totals.data(), state.data(), picked.data()}; }
  std::vector<std::int32_t> counts, totals, picked, picks;
  std::vector<SelectState> state;
};

std::vector<std::int32_t> selected(const std::vector<std::uint32_t>& keys, const Segments& segments, std::int64_t n) {
  Selection to(segments, n);
  for (std::int32_t shift = 24; shift >= 0; shift -= kDigitBits) {
    run_detection(CountDigits{keys.data(), segments, to.room(), n, shift});
    run_detection(SumDigits{segments, to.room(), n});
    run_detection(PickDigit{segments, to.room(), n, shift});
  }
  run_detection(CountPicked{keys.data(), segments, to.room(), n});
  run_detection(PlacePicked{keys.data(), segments, to.room(), to.picks.data(), n});
  return to.picks;
}

// What a sort would pick of one segment.
std::vector<std::int32_t> sorted_picks(const std::vector<std::uint32_t>& keys, std::int64_t first, const Segment& of) {
  std::vector<std::int32_t> items;
  const auto key = [&](std::int32_t item) { return keys[static_cast<std::size_t>(first + item)]; };
  for (std::int32_t item = of.first; item < of.first + of.size; ++item) {
    if (key(item) > 0) items.push_back(item);
  }
  std::ranges::stable_sort(items, std::greater{}, key);
  items.resize(std::min(items.size(), static_cast<std::size_t>(of.take)));
  std::ranges::sort(items);
  items.resize(static_cast<std::size_t>(of.take), -1);
  return items;
}

TEST(DetectionKernels, SelectWhatASortWouldPickHoweverManyAreEqual) {
  Segments segments{};
  for (const auto& [size, take] : {std::pair{1000, 100}, {37, 50}, {5, 1}, {20000, 300}}) segments.add(size, take);
  EXPECT_EQ(segments.of[1].take, 37);
  std::minstd_rand random(3);
  // Few values, many of them 0; values that differ in one digit; any values; and the greatest and least ones.
  const std::vector<std::function<std::uint32_t()>> kinds = {
      [&] { return random() % 7; }, [&] { return 0x01000000u + random() % 3 * 0x100u; },
      [&] { return static_cast<std::uint32_t>(random() * 2654435761u); },
      [&] { return random() % 2 ? 0xffffffffu : 1u; }, [] { return 0u; }};
  for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
    constexpr std::int64_t kSamples = 2;
    std::vector<std::uint32_t> keys(static_cast<std::size_t>(kSamples * segments.keys));
    std::ranges::generate(keys, kinds[kind]);
    const std::vector<std::int32_t> picks = selected(keys, segments, kSamples);
    for (std::int64_t sample = 0; sample < kSamples; ++sample) {
      for (std::int32_t k = 0; k < segments.count; ++k) {
        const Segment& of = segments.of[k];
        const auto first = picks.begin() + sample * segments.picks + of.place;
        EXPECT_EQ(std::vector(first, first + of.take), sorted_picks(keys, sample * segments.keys, of))
            << "kind " << kind << ", segment " << k;
      }
    }
  }
}

TEST(DetectionKernels, OrderKeysAsNumbers) {
  const std::vector<float> rising = {-HUGE_VALF, -3e38f, -1, -1e-45f, 0, 1e-45f, 0.5f, 1, HUGE_VALF};
  for (std::size_t k = 1; k < rising.size(); ++k) EXPECT_LT(key_of(rising[k - 1]), key_of(rising[k])) << k;
  EXPECT_EQ(key_of(-0.0f), key_of(0.0f));
  EXPECT_EQ(key_of(std::nanf("")), key_of(-HUGE_VALF));
  EXPECT_GT(key_of(-HUGE_VALF), 0u);
}

TEST(DetectionKernels, KeepTheBoxesThatNoBetterOneOverlaps) {
  constexpr std::int32_t kGroups = 3, kSize = 200;
  constexpr float kThreshold = 0.4f;
  for (const std::int32_t most : {20, 1000}) {
    std::minstd_rand random(5);
    std::vector<RatedBox> given;
    std::vector<std::vector<Candidate>> expected(2);
    for (std::size_t sample = 0; sample < 2; ++sample) {
      for (std::int32_t group = 0; group < kGroups; ++group) {
        for (std::int32_t k = 0; k < kSize; ++k) {
          if (random() % 5 == 0) {
            given.push_back(no_box(k));
            continue;
          }
          const float score = static_cast<float>(random() % 50) / 50;  // many are equal
          given.push_back(rated_box(score, group * kSize + k, group, random_box(random, 100)));
          expected[sample].push_back({score, group, group * kSize + k, given.back().box});
        }
      }
      std::ranges::sort(expected[sample], backend::is_better);
      expected[sample] = without_doubles(expected[sample], kThreshold, most);
    }
    const BoxGroups in{2, kGroups, kSize};
    std::vector<RatedBox> ranked(given.size()), best(static_cast<std::size_t>(2 * most));
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(in.boxes() * in.words())),
        dropped(static_cast<std::size_t>(in.rows() * in.words()), ~std::uint64_t{0});
    std::vector<std::int32_t> kept_before(static_cast<std::size_t>(in.rows() * (kSize + 1))), found(2);
    run_detection(RankBoxes{given.data(), ranked.data(), in});
    run_detection(OverlapBits{ranked.data(), bits.data(), in, kThreshold});
    for (std::int32_t word = 0; word < in.words(); ++word) {
      run_detection(KeepBest{ranked.data(), bits.data(), dropped.data(), kept_before.data(), in, most, word});
    }
    run_detection(MergeKept{ranked.data(), kept_before.data(), best.data(), found.data(), in, most});
    for (std::size_t sample = 0; sample < 2; ++sample) {
      ASSERT_EQ(found[sample], std::ssize(expected[sample])) << most;
      for (std::int32_t k = 0; k < most; ++k) {
        const RatedBox& box = best[sample * static_cast<std::size_t>(most) + static_cast<std::size_t>(k)];
        if (k < found[sample]) {
          EXPECT_EQ(box.origin, expected[sample][static_cast<std::size_t>(k)].origin) << k;
        } else {
          EXPECT_EQ(box.key, 0u);
        }
      }
    }
  }
}

// Regions as two pictures propose them, by the kernels.
class Proposing {
 public:
  explicit Proposing(const nn::Proposals& layer) : layer_(layer), grid_(grid_of(layer)) {
    std::minstd_rand random(11);
    std::normal_distribution<float> some(0, 1);
    const auto values = static_cast<std::size_t>(kPictures * grid_.pixels() * grid_.at_pixel);
    for (std::size_t k = 0; k < values; ++k) logits_.push_back(std::round(8 * some(random)) / 8);  // some are equal
    for (std::size_t k = 0; k < 4 * values; ++k) codes_.push_back(0.5f * some(random));
    logits_[5] = std::nanf("");
  }
  static constexpr std::int64_t kPictures = 3;

  std::vector<float> drawn(const Pictures& pictures, const StepKey& key, const std::vector<std::uint32_t>& ids) {
    const std::int32_t most = 2 * layer_.candidates;
    propose(pictures, most, most);
    std::vector<DrawnItem> items(static_cast<std::size_t>(kPictures * most));
    const DropoutKey words{static_cast<std::uint32_t>(key.seed), static_cast<std::uint32_t>(key.seed >> 32), key.epoch};
    const ProposedItems all{&pictures.samples, best_.data(), found_.data(), items.data(), kPictures, most};
    std::vector<float> rows(static_cast<std::size_t>(kPictures * layer_.regions * nn::kRegion), 0.0f);
    run_detection(MatchItems{all, {&words, ids.data(), kNode}});
    run_detection(DrawItems{all, layer_.regions});
    run_detection(PlaceItems{all, rows.data(), layer_.regions});
    return rows;
  }
  std::vector<float> best(const Pictures& pictures) {
    propose(pictures, layer_.candidates, layer_.regions);
    std::vector<float> rows(static_cast<std::size_t>(kPictures * layer_.regions * nn::kRegion));
    run_detection(WriteBoxes{best_.data(), rows.data(), kPictures, layer_.regions, false});
    return rows;
  }
  Heads<const float> heads(std::int64_t picture) const {
    const std::int64_t values = grid_.pixels() * grid_.at_pixel;
    return {{logits_.data() + picture * values, grid_.at_pixel, 1},
            {codes_.data() + picture * values * 4, 4 * grid_.at_pixel, 1}};
  }
  static constexpr int kNode = 9;

 private:
  void propose(const Pictures& pictures, std::int32_t of_level, std::int32_t most) {
    Segments segments{};
    for (int level = 0; level < layer_.levels.count; ++level) {
      segments.add(grid_.first[level + 1] - grid_.first[level], of_level);
    }
    std::vector<std::uint32_t> keys(static_cast<std::size_t>(kPictures * grid_.anchors()));
    run_detection(AnchorKeys<float>{logits_.data(), keys.data(), grid_, kPictures});
    const std::vector<std::int32_t> picks = selected(keys, segments, kPictures);
    const BoxGroups in{kPictures, segments.count, of_level};
    std::vector<RatedBox> given(static_cast<std::size_t>(in.boxes())), ranked(given.size());
    run_detection(ProposedBoxes<float>{&pictures.samples, logits_.data(), codes_.data(), picks.data(), given.data(),
                                       grid_, segments, in});
    std::vector<std::uint64_t> bits(static_cast<std::size_t>(in.boxes() * in.words())),
        dropped(static_cast<std::size_t>(in.rows() * in.words()));
    std::vector<std::int32_t> kept_before(static_cast<std::size_t>(in.rows() * (in.size + 1)));
    best_.resize(static_cast<std::size_t>(kPictures * most));
    found_.resize(kPictures);
    run_detection(RankBoxes{given.data(), ranked.data(), in});
    run_detection(OverlapBits{ranked.data(), bits.data(), in, layer_.overlap_threshold});
    for (std::int32_t word = 0; word < in.words(); ++word) {
      run_detection(KeepBest{ranked.data(), bits.data(), dropped.data(), kept_before.data(), in, most, word});
    }
    run_detection(MergeKept{ranked.data(), kept_before.data(), best_.data(), found_.data(), in, most});
  }

  const nn::Proposals layer_;
  const AnchorGrid grid_;
  std::vector<float> logits_, codes_;
  std::vector<RatedBox> best_;
  std::vector<std::int32_t> found_;
};

std::vector<float> rows_of(const std::vector<Region>& regions) {
  std::vector<float> rows(regions.size() * nn::kRegion);
  write_regions(regions, {rows.data(), nn::kRegion, 1});
  return rows;
}

std::vector<float> rows_of_picture(const std::vector<float>& rows, std::int64_t picture) {
  const auto size = std::ssize(rows) / Proposing::kPictures;
  return {rows.begin() + picture * size, rows.begin() + (picture + 1) * size};
}

TEST(DetectionKernels, ProposeTheRegionsOfAPicture) {
  const nn::Proposals layer = proposals();
  const Pictures pictures(random_pictures(3));
  Proposing proposing(layer);
  const std::vector<float> rows = proposing.best(pictures);
  for (std::int64_t picture = 0; picture < Proposing::kPictures; ++picture) {
    const nn::PictureObjects objects = pictures.objects_of(static_cast<std::size_t>(picture));
    EXPECT_EQ(rows_of_picture(rows, picture),
              rows_of(propose(layer, anchors_of(layer), &objects, proposing.heads(picture))));
  }
}

TEST(DetectionKernels, DrawTheRegionsThatAreLearntFrom) {
  const nn::Proposals layer = proposals();
  const Pictures pictures(random_pictures(3));
  Proposing proposing(layer);
  const StepKey key{0x123456789abcdef0u, 3};
  const std::vector<std::uint32_t> ids = {5, 1000000, 17};
  const std::vector<float> rows = proposing.drawn(pictures, key, ids);
  for (std::int64_t picture = 0; picture < Proposing::kPictures; ++picture) {
    const auto index = static_cast<std::size_t>(picture);
    const nn::PictureObjects objects = pictures.objects_of(index);
    const RegionDraw draw{key, Proposing::kNode, ids[index]};
    EXPECT_EQ(rows_of_picture(rows, picture),
              rows_of(propose_for_training(layer, anchors_of(layer), &objects, proposing.heads(picture), draw)));
  }
}

TEST(DetectionKernels, KeepTheObjectsThatTrainMasks) {
  constexpr int kRegions = 20, kRows = 6;
  const nn::FoundRegions layer{{.classes = 5, .detections = kRows}};
  for (const int objects : {20, 13, 6, 2}) {
    std::vector<Region> regions;
    for (int k = 0; k < kRegions; ++k) {
      const auto left = static_cast<float>(k);
      regions.push_back({{left, 0, left + 9, 9}, k < objects ? left : kBackground, 0});
    }
    const std::vector<float> rows = rows_of(regions);
    std::vector<float> kept(static_cast<std::size_t>(kRows) * nn::kRegion);
    run_detection(KeepObjects{rows.data(), kept.data(), 1, kRegions, kRows});
    EXPECT_EQ(kept, rows_of(object_regions(layer, regions))) << objects;
  }
}

// Each tap of a point is the product of two.
TEST(DetectionKernels, LookIntoRegionsWhereOnePictureDoes) {
  const nn::RegionAlign layer{
      .size = 3, .levels = {4, 24, 32}, .used = 3, .image_height = kHeight, .image_width = kWidth};
  std::minstd_rand random(13);
  std::vector<Region> regions = {{{0, 0, kWidth, kHeight}, 0, 0}, {}, {{127, 95, 128, 96}, 0, 0}};
  while (regions.size() < 20) regions.push_back({random_box(random, kHeight), 0, 0});
  const AlignGrid grid = align_grid(layer, static_cast<int>(regions.size()));
  const std::vector<float> rows = rows_of(regions);
  std::vector<AxisTap> taps(static_cast<std::size_t>(grid.first_tap(grid.regions, 0)));
  run_detection(FindTaps{rows.data(), taps.data(), grid, 1});
  const RegionAligner aligner(layer);
  for (std::int32_t region = 0; region < grid.regions; ++region) {
    std::vector<Tap> expected(static_cast<std::size_t>(aligner.points() * kTaps));
    aligner.taps_of(regions[static_cast<std::size_t>(region)].box, expected);
    for (std::int32_t k = 0; k < aligner.points() * kTaps; ++k) {
      const std::int32_t point = k / kTaps, sample = k % kTaps / 4, corner = k % 4;
      const AxisTap& down = taps[static_cast<std::size_t>(grid.first_tap(region, 0) + point / 3 * 2 + sample / 2)];
      const AxisTap& across = taps[static_cast<std::size_t>(grid.first_tap(region, 1) + point % 3 * 2 + sample % 2)];
      const bool low = corner < 2, left = corner % 2 == 0;
      const float weight = (low ? down.of_low : down.of_high) * (left ? across.of_low : across.of_high) / 4;
      const Tap& tap = expected[static_cast<std::size_t>(k)];
      EXPECT_EQ(weight, tap.weight) << region << " " << k;
      if (weight != 0) {
        EXPECT_EQ((low ? down.low : down.high) * grid.levels.w + (left ? across.low : across.high), tap.pixel);
      }
    }
  }
}

}  // namespace
}  // namespace dtrain::backend::cuda
