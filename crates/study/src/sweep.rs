//! The cells of a study by their points, for reading claims and figures.

use rexmit_lab::scenario::{Catalogue, Described, Unit};

use crate::axis::{Axis, Choice};
use crate::cells::{Cells, coordinates};
use crate::document::Coordinate;
use crate::fields::Located;
use crate::mistake::Notes;
use crate::names::{self, Sort};

/// A quantity of a cell.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Term {
    pub(crate) cell: usize,
    pub(crate) name: String,
}

/// The axes, and the cells in their order.
pub(crate) struct Sweep<'a> {
    pub(crate) axes: &'a [Axis],
    /// `None` if not every cell is valid; quantities are then not checked.
    pub(crate) cells: Option<&'a Cells>,
}

impl Sweep<'_> {
    /// Every point that `choice` allows; the last axis changes fastest.
    pub(crate) fn points(&self, choice: &Choice) -> Vec<Vec<usize>> {
        let mut points = vec![Vec::new()];
        for (axis, chosen) in self.axes.iter().zip(choice) {
            let all: Vec<usize> = (0..axis.points.len()).collect();
            let chosen = chosen.as_ref().unwrap_or(&all);
            let longer = |point: &Vec<usize>, &index: &usize| [&point[..], &[index]].concat();
            points = points
                .iter()
                .flat_map(|point| chosen.iter().map(move |index| longer(point, index)))
                .collect();
        }
        points
    }

    pub(crate) fn cell(&self, point: &[usize]) -> usize {
        let onwards = |cell, (axis, index): (&Axis, &usize)| cell * axis.points.len() + index;
        self.axes.iter().zip(point).fold(0, onwards)
    }

    /// The labels of a point on the axes for which `is_told` holds.
    pub(crate) fn told(
        &self,
        point: &[usize],
        mut is_told: impl FnMut(usize) -> bool,
    ) -> Vec<Coordinate> {
        let all = coordinates(self.axes, point).into_iter().enumerate();
        all.filter(|(axis, _)| is_told(*axis)).map(|(_, coordinate)| coordinate).collect()
    }

    fn catalogue(&self, cell: usize) -> Option<&Catalogue> {
        let cells = self.cells?;
        cells.catalogues.get(cells.cells.get(cell)?.catalogue)
    }

    /// The catalogue entry of `name`, from the first cell at these points.
    pub(crate) fn described(
        &self,
        points: &[Vec<usize>],
        sort: Sort,
        name: &str,
    ) -> Option<&Described> {
        let catalogue = self.catalogue(self.cell(points.first()?))?;
        names::described(catalogue, sort, name)
    }

    /// The unit of `name`, if all cells at `points` measure it; notes a mistake if not.
    pub(crate) fn unit(
        &self,
        notes: &Notes,
        points: &[Vec<usize>],
        sort: Sort,
        name: &Located<String>,
    ) -> Option<Unit> {
        let lacks = |point: &&Vec<usize>| {
            let catalogue = self.catalogue(self.cell(point));
            catalogue.is_some_and(|own| names::described(own, sort, &name.value).is_none())
        };
        let Some(lacking) = points.iter().find(lacks) else {
            return Some(self.described(points, sort, &name.value)?.unit);
        };
        let is_somewhere = points.iter().any(|point| !lacks(&point));
        let place = if is_somewhere { place(&self.told(lacking, |_| true)) } else { String::new() };
        names::unit(notes, self.catalogue(self.cell(lacking))?, sort, name, &place)
    }
}

/// A description such as ` at system "thin", rate "5 %"`; empty without coordinates.
pub(crate) fn place(point: &[Coordinate]) -> String {
    if point.is_empty() {
        return String::new();
    }
    let words =
        point.iter().map(|coordinate| format!("{} \"{}\"", coordinate.axis, coordinate.label));
    format!(" at {}", words.collect::<Vec<_>>().join(", "))
}
