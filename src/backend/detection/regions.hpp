// The regions of a two-stage detector on one picture: nn::Proposals, nn::FoundRegions. For the backends of the host;
// any thread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <dtrain/backend/backend.hpp>

#include "heads.hpp"

namespace dtrain::backend {

// A row of a value of regions.
struct Region {
  nn::Box box;
  float value = 0;  // in evaluation the score; in training the index of the object (kBackground: none)
  float label = 0;  // the class, counted without the background
  bool is_there() const { return box.right > box.left && box.bottom > box.top; }
  bool is_object() const { return is_there() && value >= 0; }
};

// What is drawn of a picture is keyed by these: item k has word (k mod 4) of
// philox({k / 4, node, sample, epoch}, {low(seed), high(seed) ^ RandomUse::regions}), and the lowest words are drawn.
struct RegionDraw {
  StepKey key;
  int node = 0;  // index in Graph::nodes
  std::uint32_t sample = 0;
};
// Of the items whose match is an object `objects` at most, then of the background until `all` are drawn, as far as
// there are so many; each group in the order of the items.
struct Drawn {
  std::vector<std::size_t> objects, background;
};
Drawn draw_balanced(std::span<const std::int32_t> matches, std::size_t objects, std::size_t all,
                    const RegionDraw& draw);

// Both give layer.regions rows; `objects` as in heads.hpp.
std::vector<Region> propose(const nn::Proposals& layer, const AnchorSet& anchors, const nn::PictureObjects* objects,
                            const Heads<const float>& heads);
std::vector<Region> propose_for_training(const nn::Proposals& layer, const AnchorSet& anchors,
                                         const nn::PictureObjects* objects, const Heads<const float>& heads,
                                         const RegionDraw& draw);

// Both give layer.found.detections rows. `heads`: of each region the logits and the codes.
std::vector<Region> find_regions(const nn::FoundRegions& layer, std::span<const Region> regions,
                                 const nn::PictureObjects* objects, const Heads<const float>& heads);
std::vector<Region> object_regions(const nn::FoundRegions& layer, std::span<const Region> regions);

// Writes Detections::result_size() numbers. `masks`: the logits of the found regions' masks; its values may be null.
void write_results(const nn::Detections& found, std::span<const Region> regions, const HeadValues<const float>& masks,
                   int mask_rows, std::span<float> result);

// A value of regions, channels last or planes.
std::vector<Region> read_regions(const HeadValues<const float>& values, std::size_t count);
void write_regions(std::span<const Region> regions, const HeadValues<float>& values);

}  // namespace dtrain::backend
