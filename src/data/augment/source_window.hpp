// Which part of a picture becomes the output, in the picture's own pixels, where that is all that augmentation does.
#pragma once

#include <optional>

#include <dtrain/data/augment.hpp>

#include "resample.hpp"

namespace dtrain::data {

struct SourceWindow {
  Span y, x;
  bool mirror = false;
};

// random_resized_crop: a window of random area and aspect (Szegedy et al., "Going deeper with convolutions", as MXNet
// and torchvision do it: up to ten tries, else the largest centred one). Otherwise the crop of the picture whose
// shorter edge became options.resize. nullopt: the options ask for more than a window, or the picture is smaller than
// the crop.
std::optional<SourceWindow> draw_source_window(int h, int w, const Augment& options, const SampleKey& key,
                                               const nn::Shape& shape);

struct Sides {
  int h = 0, w = 0;
};
// Throws DataError where one is longer than a picture may be: the longer side of a thin picture knows no bound.
Sides checked_sides(double h, double w);
// The sides of a picture whose shorter edge becomes `edge`; the longer one is cut to whole pixels, as MXNet and
// torchvision do. Throws as checked_sides().
Sides with_shorter_edge(int h, int w, int edge);

}  // namespace dtrain::data
